# SPDX-License-Identifier: Apache-2.0
"""Features of device profiles in microversion 2.4, with running services."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.servers.stack import ADMIN, NOVA, Cloud, Instance, expect

NEWEST: Final = {'OpenStack-API-Version': 'accelerator 2.4'}
UNITS: Final = 16  # handles of the fake device
PROFILES: Final = '/v2/device_profiles'


@pytest.fixture(scope='module')
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with create_cloud(tmp_path_factory.mktemp('newest')) as cloud:
        yield cloud


def create_cloud(directory: Path, **api: object) -> Cloud:
    """Create a cloud of one process; ``api`` are options of that section."""
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
    """Send a request as an administrator with microversion 2.4; return the JSON."""
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
    """Return the result and the reasons of the first group on the only host."""
    explanation = ask(cloud, 'POST', f'{PROFILES}/{name}/explain')
    (host,) = explanation['hosts']
    assert host['hostname'] == cloud.host
    assert host['fits'] is (explanation['verdict'] == 'fits')
    return explanation['verdict'], [
        reason['code'] for reason in host['groups'][0]['reasons']
    ]


# --- explanations -------------------------------------------------------------------


def test_explain_full_host_returns_not_now(cloud: Cloud) -> None:
    name = profile(cloud, {'resources:FPGA': '1'})
    assert explain(cloud, name) == ('fits', [])
    hungry = cloud.boot('FPGA', UNITS)
    cloud.until(hungry.is_resolved)
    assert explain(cloud, name) == ('not-now', ['no-free-unit'])
    hungry.delete()
    cloud.until(lambda: explain(cloud, name) == ('fits', []))


def test_explain_missing_trait_is_named(cloud: Cloud) -> None:
    group = {'resources:FPGA': '1', 'trait:CUSTOM_MISSING': 'required'}
    name = profile(cloud, group)
    assert explain(cloud, name) == ('never', ['missing-trait'])
    (warning,) = ask(cloud, 'POST', f'{PROFILES}/{name}/explain')['warnings']
    assert warning['traits'] == ['CUSTOM_MISSING']


def test_explain_disabled_device_returns_reason(cloud: Cloud) -> None:
    name = profile(cloud, {'resources:FPGA': '1'})
    (device,) = ask(cloud, 'GET', '/v2/devices')['devices']
    patch = [
        {'op': 'replace', 'path': '/status', 'value': 'maintaining'},
        {'op': 'add', 'path': '/reason', 'value': 'a new fan'},
    ]
    ask(cloud, 'PATCH', f'/v2/devices/{device["uuid"]}', patch)
    assert explain(cloud, name) == ('not-now', ['maintenance'])
    explanation = ask(cloud, 'POST', f'{PROFILES}/{name}/explain?hostname={cloud.host}')
    (reason,) = explanation['hosts'][0]['groups'][0]['reasons']
    assert 'a new fan' in reason['text']
    ask(cloud, 'POST', f'/v2/devices/{device["uuid"]}/enable')
    cloud.until(lambda: explain(cloud, name) == ('fits', []))


def test_create_impossible_profile_returns_409(tmp_path: Path) -> None:
    with create_cloud(tmp_path, refuse_impossible_profiles=True) as strict:
        groups = [{'resources:FPGA': f'{UNITS + 1}'}]
        body = [{'name': 'greedy', 'groups': groups}]
        answer = strict.api().ask('POST', PROFILES, body)
        assert answer.status == 409
        assert f'has {UNITS}' in str(answer.body)
        name = profile(strict, {'resources:FPGA': f'{UNITS}'})
        patch = [{'op': 'replace', 'path': '/groups', 'value': groups}]
        newest = strict.api({**ADMIN, **NEWEST})
        assert newest.ask('PATCH', f'{PROFILES}/{name}', patch).status == 409


# --- disabled profiles --------------------------------------------------------------


def boot(cloud: Cloud, name: str, server: str | None = None) -> Instance:
    """Create an instance with bound ARQs, or unshelve one."""
    resources, provider = {'FPGA': 1}, cloud.provider_of('FPGA')
    instance = Instance(cloud, provider, resources, uuid=server or str(uuid4()))
    instance.create_arqs(name)
    instance.allocate()
    expect(instance.bind(), 202)
    cloud.until(lambda: instance.states() == {'Bound'})
    return instance


def test_disabled_profile_keeps_former_servers(cloud: Cloud) -> None:
    name = profile(cloud, {'resources:FPGA': '1'})
    server, second = boot(cloud, name), boot(cloud, name)
    change(cloud, name, 'enabled', False)
    body = {'device_profile_name': name}
    requests = '/v2/accelerator_requests'
    assert server.states() == {'Bound'}
    assert cloud.api(NOVA).ask('POST', requests, body).status == 409
    # Shelve with offload, then unshelve.
    server.delete()
    assert cloud.api().ask('POST', requests, body).status == 409
    unshelved = boot(cloud, name, server.uuid)
    assert unshelved.uuid == server.uuid
    rival = Instance(cloud, unshelved.provider, {'FPGA': 1})
    rival.create_arqs(name)
    refused = rival.bind()
    assert refused.status == 409
    assert f'{name} is disabled' in str(refused.body)
    arqs = ','.join(rival.arqs)
    expect(cloud.api(NOVA).ask('DELETE', f'{requests}?arqs={arqs}'), 204)
    for instance in (unshelved, second):
        instance.delete()


# --- attach targets -----------------------------------------------------------------


@pytest.mark.parametrize(('target', 'is_shown'), [('host', True), ('none', False)])
def test_companion_device_is_claimed_and_hidden_from_nova(
    cloud: Cloud, target: str, is_shown: bool
) -> None:
    guest = {'resources:FPGA': '1'}
    name = profile(cloud, {**guest, 'accel:attach_target': target}, guest)
    instance = Instance(cloud, cloud.provider_of('FPGA'), {'FPGA': 2})
    instance.create_arqs(name)
    instance.allocate()
    expect(instance.bind(), 202)
    cloud.until(instance.is_resolved, 'Nova receives both events')
    assert [arq['uuid'] for arq in instance.list_arqs()] == instance.arqs[1:]
    path = f'/v2/accelerator_requests/{instance.arqs[0]}'
    answer = ask(cloud, 'GET', path)
    assert (answer['state'], answer['attach_target']) == ('Bound', target)
    assert bool(answer['attach_handle_info']) is is_shown
    assert answer['device_uuid']
    older = expect(cloud.api(NOVA).ask('GET', path), 200)
    assert (older['state'], older['attach_handle_type']) == ('Bound', '')
    instance.delete()
