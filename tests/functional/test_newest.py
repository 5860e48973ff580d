# SPDX-License-Identifier: Apache-2.0
"""What 2.4 adds to device profiles, through the front door of a service."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.fakes.stack import ADMIN, NOVA, Cloud, Instance, expect

NEWEST: Final = {'OpenStack-API-Version': 'accelerator 2.4'}
UNITS: Final = 16  # of the fake device
PROFILES: Final = '/v2/device_profiles'


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with made(tmp_path_factory.mktemp('newest')) as cloud:
        yield cloud


def made(directory: Path, **api: object) -> Cloud:
    """In one process; ``api`` are options of that section."""
    return Started(
        directory,
        transport_url='local://',
        connection=f'sqlite:///{directory}/db.sqlite',
        options={'api': api},
    )


class Started(Cloud):
    def __enter__(self) -> 'Started':
        super().__enter__()
        self.start('standalone')
        self.provider_of('FPGA')
        return self


def ask(cloud: Cloud, method: str, path: str, body: Any = None) -> Any:
    """What an administrator reads who speaks 2.4; JSON."""
    answer = cloud.api({**ADMIN, **NEWEST}).ask(method, path, body)
    assert answer.status < 300, answer.body
    return answer.body


def change(cloud: Cloud, profile: str, field: str, value: object) -> None:
    patch = [{'op': 'replace', 'path': f'/{field}', 'value': value}]
    ask(cloud, 'PATCH', f'{PROFILES}/{profile}', patch)


def profile(cloud: Cloud, *groups: dict[str, str]) -> str:
    name = f'profile-{uuid4().hex[:8]}'
    ask(cloud, 'POST', PROFILES, [{'name': name, 'groups': list(groups)}])
    return name


def explain(cloud: Cloud, name: str) -> tuple[str, list[str]]:
    """The verdict, and why the one host does not take the first group."""
    told = ask(cloud, 'POST', f'{PROFILES}/{name}/explain')
    (host,) = told['hosts']
    assert host['hostname'] == cloud.host
    assert host['fits'] is (told['verdict'] == 'fits')
    return told['verdict'], [one['code'] for one in host['groups'][0]['reasons']]


# --- where it fits ------------------------------------------------------------------


def test_a_host_fits_until_it_is_full(cloud: Cloud) -> None:
    one = profile(cloud, {'resources:FPGA': '1'})
    assert explain(cloud, one) == ('fits', [])
    hungry = cloud.boot('FPGA', UNITS)
    cloud.until(hungry.resolved)
    assert explain(cloud, one) == ('not-now', ['no-free-unit'])
    hungry.delete()
    cloud.until(lambda: explain(cloud, one) == ('fits', []))


def test_a_host_that_lacks_a_trait_says_which(cloud: Cloud) -> None:
    wanted = {'resources:FPGA': '1', 'trait:CUSTOM_MISSING': 'required'}
    name = profile(cloud, wanted)
    assert explain(cloud, name) == ('never', ['missing-trait'])
    (warning,) = ask(cloud, 'POST', f'{PROFILES}/{name}/explain')['warnings']
    assert warning['traits'] == ['CUSTOM_MISSING']


def test_a_host_whose_device_is_disabled_says_why(cloud: Cloud) -> None:
    name = profile(cloud, {'resources:FPGA': '1'})
    (device,) = ask(cloud, 'GET', '/v2/devices')['devices']
    patch = [
        {'op': 'replace', 'path': '/status', 'value': 'maintaining'},
        {'op': 'add', 'path': '/reason', 'value': 'a new fan'},
    ]
    ask(cloud, 'PATCH', f'/v2/devices/{device["uuid"]}', patch)
    assert explain(cloud, name) == ('not-now', ['maintenance'])
    told = ask(cloud, 'POST', f'{PROFILES}/{name}/explain?hostname={cloud.host}')
    (reason,) = told['hosts'][0]['groups'][0]['reasons']
    assert 'a new fan' in reason['text']
    ask(cloud, 'POST', f'/v2/devices/{device["uuid"]}/enable')
    cloud.until(lambda: explain(cloud, name) == ('fits', []))


def test_a_group_that_no_provider_could_ever_serve_is_refused(tmp_path: Path) -> None:
    with made(tmp_path, refuse_impossible_profiles=True) as strict:
        groups = [{'resources:FPGA': f'{UNITS + 1}'}]
        body = [{'name': 'greedy', 'groups': groups}]
        answer = strict.api().ask('POST', PROFILES, body)
        assert answer.status == 409
        assert f'has {UNITS}' in str(answer.body)
        name = profile(strict, {'resources:FPGA': f'{UNITS}'})
        patch = [{'op': 'replace', 'path': '/groups', 'value': groups}]
        newest = strict.api({**ADMIN, **NEWEST})
        assert newest.ask('PATCH', f'{PROFILES}/{name}', patch).status == 409


# --- a profile that is retired ------------------------------------------------------


def boot(cloud: Cloud, name: str, server: str | None = None) -> Instance:
    """A server with its requests bound, or one that comes back so."""
    resources, provider = {'FPGA': 1}, cloud.provider_of('FPGA')
    instance = Instance(cloud, provider, resources, uuid=server or str(uuid4()))
    instance.create_arqs(name)
    instance.allocate()
    expect(instance.bind(), 202)
    cloud.until(lambda: instance.states() == {'Bound'})
    return instance


def test_servers_of_a_retired_profile_are_unharmed(cloud: Cloud) -> None:
    name = profile(cloud, {'resources:FPGA': '1'})
    server, other = boot(cloud, name), boot(cloud, name)
    change(cloud, name, 'enabled', False)
    body = {'device_profile_name': name}
    requests = '/v2/accelerator_requests'
    assert server.states() == {'Bound'}
    assert cloud.api(NOVA).ask('POST', requests, body).status == 409
    # Shelved and offloaded; then unshelved.
    server.delete()
    assert cloud.api().ask('POST', requests, body).status == 409
    back = boot(cloud, name, server.uuid)
    assert back.uuid == server.uuid
    stranger = Instance(cloud, back.provider, {'FPGA': 1})
    stranger.create_arqs(name)
    refused = stranger.bind()
    assert refused.status == 409
    assert f'{name} is disabled' in str(refused.body)
    arqs = ','.join(stranger.arqs)
    expect(cloud.api(NOVA).ask('DELETE', f'{requests}?arqs={arqs}'), 204)
    for one in (back, other):
        one.delete()


# --- whom it is for -----------------------------------------------------------------


@pytest.mark.parametrize(('target', 'is_shown'), [('host', True), ('none', False)])
def test_what_is_not_for_the_guest_is_taken_and_not_shown_to_nova(
    cloud: Cloud, target: str, is_shown: bool
) -> None:
    guest = {'resources:FPGA': '1'}
    name = profile(cloud, {**guest, 'accel:attach_target': target}, guest)
    instance = Instance(cloud, cloud.provider_of('FPGA'), {'FPGA': 2})
    instance.create_arqs(name)
    instance.allocate()
    expect(instance.bind(), 202)
    cloud.until(instance.resolved, 'Nova hears of both')
    assert [one['uuid'] for one in instance.shown()] == instance.arqs[1:]
    path = f'/v2/accelerator_requests/{instance.arqs[0]}'
    seen = ask(cloud, 'GET', path)
    assert (seen['state'], seen['attach_target']) == ('Bound', target)
    assert bool(seen['attach_handle_info']) is is_shown
    assert seen['device_uuid']
    older = expect(cloud.api(NOVA).ask('GET', path), 200)
    assert (older['state'], older['attach_handle_type']) == ('Bound', '')
    instance.delete()
