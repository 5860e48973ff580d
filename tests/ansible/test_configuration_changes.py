# SPDX-License-Identifier: Apache-2.0
"""Changes of a configuration through API, conductor, agent and ansible-runner.

The daemons, the broker, the database and Placement are real. The playbooks write files.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from devstack.launcher.rest import Answer
from tests.builders.hardware_sets import write_hardware_set
from tests.chaos.faulty_cloud import FaultyCloud
from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.stack import ADMIN, expect

_VERSION: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'}


class Site(FaultyCloud):
    """Cloud whose conductors have a hardware set for the fake FPGA."""

    def __init__(self, directory: Path, transport_url: str, connection: str) -> None:
        super().__init__(directory, transport_url, connection)
        self.root = directory / 'ansible'
        file = write_hardware_set(self.root, self.host)
        self._runs = self.root / 'runs'
        self.configure({'conductor': {'hardware_sets': file}})

    def start_daemons(self) -> None:
        self.migrate()
        self.start('conductor')
        self.start('api')
        self.start('agent')
        self.provider_of('FPGA')

    @property
    def runs(self) -> list[str]:
        """Playbooks that have begun."""
        return self._runs.read_text().splitlines()

    @property
    def path(self) -> str:
        query = "SELECT uuid FROM devices WHERE model = 'FakeDevice'"
        ((uuid,),) = self.rows(query)
        return f'/v2/devices/{uuid}'

    def change(self, **settings: object) -> Answer:
        value = {'set': 'boards', 'settings': settings}
        body = [{'op': 'replace', 'path': '/configuration', 'value': value}]
        return self.api(_VERSION).ask('PATCH', self.path, body)

    # Any: JSON of the API.
    def last_change(self) -> dict[str, Any]:
        answer = self.api(_VERSION).ask('GET', f'{self.path}/configuration')
        change: dict[str, Any] = expect(answer, 200)['changes'][0]
        return change

    def read_status(self) -> str:
        device = expect(self.api(_VERSION).ask('GET', self.path), 200)
        return str(device.get('device', device)['status'])

    def count_free(self) -> int:
        inventory = self.inventory(self.provider_of('FPGA'))['FPGA']
        return inventory['total'] - inventory['reserved']

    def wait_for_driver(self) -> None:
        """Wait until the set-up loads the driver."""
        pid = self.root / 'pid'
        self.until(lambda: pid.exists() and pid.read_text(), 'the driver is loaded')

    def wait_for_end(self) -> dict[str, Any]:
        self.until(lambda: self.last_change()['finished_at'], 'the change has ended')
        return self.last_change()


@pytest.fixture(scope='module')
def bus() -> Iterator[str]:
    with rabbitmq.virtual_host() as url:
        yield url


@pytest.fixture(params=['mariadb', 'postgresql'])
def site(request: pytest.FixtureRequest, bus: str, tmp_path: Path) -> Iterator[Site]:
    database = fresh_database(request.param)
    with ExitStack() as cleanup:
        connection = next(database)
        cleanup.callback(next, database, None)
        site = cleanup.enter_context(Site(tmp_path, bus, connection))
        site.start_daemons()
        yield site


def follow(site: Site, answer: Answer, state: str = 'succeeded') -> dict[str, Any]:
    """Return the operation of an answer after its end."""
    expect(answer, 202)
    path = f'/v2{answer.location.partition("/v2")[2]}?wait=5'

    def read_end() -> dict[str, Any] | None:
        response = site.api(_VERSION).ask('GET', path)
        assert response.status in (200, 503), response.body
        return response.body if response.body.get('ended_at') else None

    operation: dict[str, Any] = site.until(read_end, 'the operation ends')
    assert (operation['kind'], operation['state']) == ('configuration', state)
    return operation


def kill_conductor(site: Site) -> None:
    """Kill the conductor while the set-up runs, and start it again."""
    site.wait_for_driver()
    (conductor,) = (child for child in site.children if 'conductor' in child.name)
    conductor.kill()
    (site.root / 'loaded').touch()
    site.restart(conductor, 'conductor')


def test_operation_ends_over_killed_conductor(site: Site) -> None:
    """The playbook waits for the test, so the operation has not ended."""
    answer = site.change(count=4)
    kill_conductor(site)
    steps = [step['name'] for step in follow(site, answer)['steps']]
    assert (steps[:2], steps[-1]) == (['teardown', 'setup'], 'applied')


def test_failed_configuration_is_retried_over_killed_conductor(site: Site) -> None:
    (site.root / 'refused').touch()
    answer = site.change(count=4)
    follow(site, answer, 'failed')
    (site.root / 'refused').unlink()
    path = f'/v2{answer.location.partition("/v2")[2]}'
    retry = site.api(_VERSION).ask('POST', f'{path}/retry', {})
    assert retry.location == answer.location
    kill_conductor(site)
    operation = follow(site, retry)
    assert (operation['reason'], operation['error_code']) == (None, None)
    assert site.last_change()['settings'] == {'count': 4}


def test_change_holds_device_until_playbooks_end(site: Site) -> None:
    guest = site.boot('FPGA')
    site.until(guest.is_resolved, 'Nova receives the event')
    answer = site.change(count=4)
    assert (answer.status, guest.arqs[0] in str(answer.body)) == (409, True)
    guest.end()
    assert site.change(count=9).status == 400
    assert site.runs == []

    expect(site.change(count=4), 202)
    site.wait_for_driver()
    assert site.runs == ['teardown', 'set up 4']
    assert (site.read_status(), site.count_free()) == ('maintaining', 0)
    assert site.change(count=5).status == 409
    (site.root / 'loaded').touch()
    change = site.wait_for_end()
    assert (change['state'], change['phase'], change['tasks']) == (
        'succeeded',
        'setup',
        3,
    )
    assert change['log'].splitlines()[-1] == 'setup: Load the driver: changed'
    site.until(lambda: site.count_free() == 16, 'the device is offered again')
    assert site.read_status() == 'enabled'

    expect(site.change(count=2), 202)
    assert site.wait_for_end()['settings'] == {'count': 2}
    assert site.runs[2:] == ['teardown', 'set up 2']
