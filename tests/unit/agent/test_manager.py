# SPDX-License-Identifier: Apache-2.0
"""The endpoints unpack what arrives and refuse what they cannot read."""

from pathlib import Path
from typing import Any

import oslo_messaging
import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.manager import Manager
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import CyborgError, DriverError
from cyborg_lite.rpc import agent, wire
from cyborg_lite.rpc.context import of_daemon
from cyborg_lite.rpc.wire import MalformedMessage
from tests.fakes.drivers import PreparingDriver, finding, handle, refusal

_HOST = Host('compute-1', Path('/nonexistent'))


@pytest.fixture
def driver() -> PreparingDriver:
    driver = PreparingDriver(_HOST, {})
    driver.findings = [finding()]
    return driver


@pytest.fixture
def manager(driver: PreparingDriver, cache: Cache, journal: Journal) -> Manager:
    discovery = Discovery(_HOST, {'scripted': driver}, 60.0)
    discovery.look()
    return Manager(Preparation(discovery, cache, journal))


# Any: what arrives on the wire is of no known type.
def _refused(act: Any, handles: Any) -> CyborgError:
    with pytest.raises(oslo_messaging.ExpectedException) as caught:
        act(of_daemon(), handles=handles)
    error = caught.value.exc_info[1]
    assert isinstance(error, CyborgError)
    return error


def test_handles_reach_the_driver(manager: Manager, driver: PreparingDriver) -> None:
    handles = wire.dump([handle(uuid='a'), handle(uuid='b')])
    manager.prepare(of_daemon(), handles=handles)
    assert driver.prepared == {'a', 'b'}
    manager.release(of_daemon(), handles=handles)
    assert driver.prepared == set()


def test_what_a_driver_refuses_reaches_the_caller(
    manager: Manager, driver: PreparingDriver
) -> None:
    driver.refused['a'] = refusal('The card is busy.')
    for act in (manager.prepare, manager.release):
        error = _refused(act, wire.dump([handle(uuid='a')]))
        assert isinstance(error, DriverError)
        assert error.text == 'The card is busy.'


def test_a_malformed_message_is_refused(manager: Manager) -> None:
    nonsense: tuple[object, ...] = (None, [{'uuid': 1}], {})
    for handles in nonsense:
        assert isinstance(_refused(manager.prepare, handles), MalformedMessage)


def test_it_serves_the_version_that_its_clients_speak() -> None:
    assert Manager.target.version == agent.VERSION
