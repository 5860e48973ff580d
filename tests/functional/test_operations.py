# SPDX-License-Identifier: Apache-2.0
"""Operations of each kind end where ``Location`` says, also over a killed conductor.

The test holds the host or Placement until the conductor is killed, so that the job
cannot end before. The suite ``ansible`` has the operation of a configuration.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from devstack.launcher.rest import Answer
from tests.builders import driver_packages
from tests.builders.bitstream_files import gbs, image
from tests.chaos.faulty_cloud import FaultyCloud, run_cloud
from tests.doubles.held_driver import HeldDriver
from tests.doubles.operated_driver import MODES, RESOURCE_CLASS
from tests.servers import rabbitmq
from tests.servers.glance import RealGlance, real_glance
from tests.servers.http_proxy import HttpProxy
from tests.servers.stack import ADMIN, NOVA, Instance, expect

__all__ = ['real_glance']

_VERSION: Final = {'OpenStack-API-Version': 'accelerator 2.7'}
_NOVA: Final = {**NOVA, **_VERSION}
_ADMIN: Final = {**ADMIN, **_VERSION}
_GONE: Final = 'gone-host'


class Gate:
    """Holds the card and Placement until the test opens it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open, self._reached = threading.Event(), threading.Event()
        self._open.set()
        self._refuses = False

    def choose_fate(self, _request: str) -> str:
        """Return the fate of a request for Placement; wait while the gate is closed."""
        if self._refuses:
            self._reached.set()
            return '503'
        if not self._open.is_set():
            self._reached.set()
            self._open.wait()
        return 'passed'

    def close(self, kind: str) -> None:
        """Hold the work that an operation of the kind needs."""
        self._reached.clear()
        if kind == 'forget':  # the request itself waits for Placement
            self._refuses = True
        elif kind in ('audit', 'reconcile', 'refresh'):
            self._open.clear()
        else:
            (self.folder / 'reached').unlink(missing_ok=True)
            (self.folder / 'held').touch()

    def is_reached(self) -> bool:
        return self._reached.is_set() or (self.folder / 'reached').exists()

    def open(self) -> None:
        (self.folder / 'held').unlink(missing_ok=True)
        (self.folder / 'reached').unlink(missing_ok=True)
        self._refuses = False
        self._open.set()


class Site(FaultyCloud):
    """Cloud with the held card, and a gate before its Placement."""

    def __init__(self, directory: Path, url: str, glance: RealGlance) -> None:
        super().__init__(directory, url, f'sqlite:///{directory}/db.sqlite')
        folder = directory / 'card'
        folder.mkdir()
        self.gate, self.glance = Gate(folder), glance
        self.instances: list[Instance] = []
        self.proxy = HttpProxy(self.placement.endpoint, self.gate.choose_fate)
        self.python_path.append(
            driver_packages.install(HeldDriver, directory / HeldDriver.NAME)
        )
        self.configure(
            {
                'agent': {'enabled_drivers': HeldDriver.NAME},
                HeldDriver.NAME: {'folder': folder},
                'glance': {'endpoint_override': glance.endpoint},
                'placement': {'endpoint_override': self.proxy.url},
            }
        )

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        return self.api(_ADMIN).ask(method, path, body)

    def read_uuid(self, table: str) -> str:
        """Return the uuid of the card in a table."""
        ((uuid,),) = self.until(
            lambda: self.rows(f'SELECT uuid FROM {table}'), 'the card is stored'
        )
        return str(uuid)

    # Any: JSON of the API.
    def read_card(self, part: str) -> dict[str, Any]:
        path = f'/v2/devices/{self.read_uuid("devices")}/{part}'
        body: dict[str, Any] = expect(self.ask('GET', path), 200)
        return body

    def has_unit(self, state: str) -> bool:
        (unit,) = self.read_card('cleanings')['units']
        return bool(unit['state'] == state)


@pytest.fixture(scope='module')
def site(
    tmp_path_factory: pytest.TempPathFactory, real_glance: RealGlance
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp('operations')
    with rabbitmq.virtual_host() as url:
        site = Site(directory, url, real_glance)
        with site.proxy, run_cloud(site):
            site.start('conductor')
            yield site


def create_instance(site: Site) -> Instance:
    instance = site.request(RESOURCE_CLASS)
    site.instances.append(instance)
    return instance


def bind(site: Site, close: Callable[[], None]) -> Answer:
    instance = create_instance(site)
    close()
    return instance.bind(_NOVA)


def unbind(site: Site, close: Callable[[], None]) -> Answer:
    instance = create_bound_instance(site)
    close()
    return ask_unbind(site, instance)


def create_bound_instance(site: Site) -> Instance:
    instance = create_instance(site)
    expect(instance.bind(), 202)
    site.until(instance.is_resolved, 'Nova receives the event')
    return instance


def ask_unbind(site: Site, instance: Instance) -> Answer:
    names = 'hostname', 'device_rp_uuid', 'instance_uuid'
    patch = [{'path': f'/{name}', 'op': 'remove'} for name in names]
    body = dict.fromkeys(instance.arqs, patch)
    return site.api(_NOVA).ask('PATCH', '/v2/accelerator_requests', body)


def program(site: Site, close: Callable[[], None]) -> Answer:
    uuid = site.glance.upload(gbs(), image().tags, image().properties)
    close()
    path = f'/v2/deployables/{site.read_uuid("deployables")}/program'
    value = [{'image_uuid': uuid}]
    return site.ask(
        'PATCH', path, [{'op': 'replace', 'path': '/program', 'value': value}]
    )


def change_mode(site: Site, close: Callable[[], None]) -> Answer:
    current = site.read_card('modes')['current']
    (mode,) = set(MODES) - {current}
    close()
    path = f'/v2/devices/{site.read_uuid("devices")}'
    return site.ask('PATCH', path, [{'op': 'replace', 'path': '/mode', 'value': mode}])


def clean(site: Site, close: Callable[[], None]) -> Answer:
    refusal = site.gate.folder / 'refuse-clean'
    refusal.touch()
    instance = create_bound_instance(site)
    instance.delete()
    site.until(lambda: site.has_unit('clean_failed'), 'the cleaning run fails')
    refusal.unlink()
    close()
    path = f'/v2/devices/{site.read_uuid("devices")}/cleanings/retry'
    return site.ask('POST', path, {})


def request(kind: str) -> Callable[[Site, Callable[[], None]], Answer]:
    def ask(site: Site, close: Callable[[], None]) -> Answer:
        close()
        host = {} if kind == 'audit' else {'hostname': site.host}
        return site.ask('POST', '/v2/operations', {'kind': kind, **host})

    return ask


def forget(site: Site, close: Callable[[], None]) -> Answer:
    columns = 'version, machine, started_at, heartbeat_at, audited_at'
    with closing(sqlite3.connect(site.directory / 'db.sqlite')) as database, database:
        database.execute(
            f'INSERT INTO services (uuid, binary, host, state, {columns}, last_event, '
            f"report_number) SELECT ?, 'cyborg-lite-agent', ?, 'down', {columns}, 0, 0 "
            'FROM services LIMIT 1',
            (str(uuid4()), _GONE),
        )
    close()
    return site.ask('DELETE', f'/v2/hosts/{_GONE}')


REQUESTS: Final[dict[str, Callable[[Site, Callable[[], None]], Answer]]] = {
    'bind': bind,
    'release': unbind,
    'program': program,
    'mode': change_mode,
    'cleaning': clean,
    'audit': request('audit'),
    'reconcile': request('reconcile'),
    'refresh': request('refresh'),
    'forget': forget,
}
STEPS: Final = {
    'bind': ['BindStarted', 'Claimed', 'Bound'],
    'release': ['Unbound', 'Released'],
    'program': ['checking', 'loading'],
    'mode': ['held'],
    'cleaning': ['erase'],
    'audit': ['checking-arqs', 'checking-placement'],
    'reconcile': ['comparing-providers'],
    'refresh': ['requesting-report', 'comparing-providers'],
    'forget': ['deleting-records', 'comparing-providers'],
}


def read_operation(site: Site, answer: Answer, query: str = '') -> dict[str, Any]:
    """Return the operation that the answer names; empty: no conductor answers."""
    path = f'/v2{answer.location.partition("/v2")[2]}'
    response = site.ask('GET', f'{path}{query}')
    assert response.status in (200, 503), response.body
    return dict(response.body) if response.status == 200 else {}


def follow(site: Site, answer: Answer, kind: str) -> dict[str, Any]:
    """Return the operation of an answer after its success."""
    assert answer.status == 202, answer.body

    def read_end() -> dict[str, Any] | None:
        operation = read_operation(site, answer, '?wait=5')
        return operation if operation.get('ended_at') else None

    operation: dict[str, Any] = site.until(read_end, f'the operation {kind} ends')
    assert (operation['kind'], operation['state']) == (kind, 'succeeded'), operation
    names = list(dict.fromkeys(step['name'] for step in operation['steps']))
    # Only a bind that a conductor continues records that its host is prepared.
    names = [name for name in names if name != 'Prepared']
    assert names == STEPS[kind], operation
    return operation


def kill_conductor(site: Site, answer: Answer) -> None:
    """Kill the conductor while it runs the operation, and start it again."""
    assert answer.status == 202, answer.body
    site.until(site.gate.is_reached, 'the work is held')
    (conductor,) = (child for child in site.children if 'conductor' in child.name)
    assert read_operation(site, answer)['state'] in ('waiting', 'running')
    conductor.kill()
    site.gate.open()
    site.restart(conductor, 'conductor')


def settle(site: Site) -> None:
    """Delete the instances, and wait until the card is clean and idle."""
    for instance in site.instances:
        arqs = ','.join(instance.arqs)
        site.api(NOVA).ask('DELETE', f'/v2/accelerator_requests?arqs={arqs}')
        site.placement.ask('DELETE', f'/allocations/{instance.uuid}')
    site.instances.clear()
    # Providers of a forgotten host are removed after ten minutes.
    query = "SELECT 1 FROM jobs WHERE kind NOT IN ('reconcile', 'provider-removal')"
    site.until(lambda: not site.rows(query), 'every job is finished')
    site.until(lambda: site.has_unit('clean'), 'the unit is clean')


@pytest.fixture(autouse=True)
def _open_gate(site: Site) -> Iterator[None]:
    yield
    site.gate.open()
    settle(site)


@pytest.mark.parametrize('kind', REQUESTS)
def test_restarted_conductor_ends_operation(site: Site, kind: str) -> None:
    answer = REQUESTS[kind](site, lambda: site.gate.close(kind))
    kill_conductor(site, answer)
    follow(site, answer, kind)


@pytest.mark.parametrize(
    ('kind', 'refusal'), [('program', 'refuse-program'), ('cleaning', 'refuse-clean')]
)
def test_retried_operation_ends_over_killed_conductor(
    site: Site, kind: str, refusal: str
) -> None:
    file = site.gate.folder / refusal
    answer = REQUESTS[kind](site, file.touch)

    def has_failed() -> bool:
        return bool(read_operation(site, answer, '?wait=5')['state'] == 'failed')

    site.until(has_failed, 'the operation fails')
    file.unlink()
    site.gate.close(kind)
    path = f'/v2{answer.location.partition("/v2")[2]}'
    retry = site.ask('POST', f'{path}/retry', {})
    assert retry.location == answer.location
    kill_conductor(site, retry)
    operation = follow(site, retry, kind)
    assert (operation['reason'], operation['error_code']) == (None, None)
