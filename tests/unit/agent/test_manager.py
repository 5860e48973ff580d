# SPDX-License-Identifier: Apache-2.0
"""Tests of the RPC endpoints of the agent."""

from pathlib import Path
from typing import Any

import oslo_messaging
import pytest

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.device_locks import DeviceLocks
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal
from cyborg_lite.agent.manager import Manager
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.exceptions import CyborgError, DriverError, MalformedMessage
from cyborg_lite.rpc import agent, wire
from cyborg_lite.rpc.context import daemon_context
from tests.doubles.drivers import PreparingDriver, discovery_result, handle, refusal

_HOST = Host('compute-1', Path('/nonexistent'))


@pytest.fixture
def driver() -> PreparingDriver:
    driver = PreparingDriver(_HOST, {})
    driver.results = [discovery_result()]
    return driver


@pytest.fixture
def manager(driver: PreparingDriver, cache: Cache, journal: Journal) -> Manager:
    discovery = Discovery(_HOST, {'scripted': driver}, 60.0)
    discovery.scan()
    return Manager(Preparation(discovery, cache, journal, DeviceLocks()))


# Any: RPC arguments have no known type.
def _call_and_get_error(method: Any, handles: Any) -> CyborgError:
    with pytest.raises(oslo_messaging.ExpectedException) as caught:
        method(daemon_context(), handles=handles)
    error = caught.value.exc_info[1]
    assert isinstance(error, CyborgError)
    return error


def test_prepare_and_release_call_driver(
    manager: Manager, driver: PreparingDriver
) -> None:
    handles = wire.dump([handle(uuid='a'), handle(uuid='b')])
    manager.prepare(daemon_context(), handles=handles)
    assert driver.prepared == {'a', 'b'}
    manager.release(daemon_context(), handles=handles)
    assert driver.prepared == set()


def test_driver_error_is_returned_to_caller(
    manager: Manager, driver: PreparingDriver
) -> None:
    driver.refusals['a'] = refusal('The card is busy.')
    for method in (manager.prepare, manager.release):
        error = _call_and_get_error(method, wire.dump([handle(uuid='a')]))
        assert isinstance(error, DriverError)
        assert error.text == 'The card is busy.'


def test_malformed_handles_raise_malformed_message(manager: Manager) -> None:
    malformed_arguments: tuple[object, ...] = (None, [{'uuid': 1}], {})
    for handles in malformed_arguments:
        assert isinstance(
            _call_and_get_error(manager.prepare, handles), MalformedMessage
        )


def test_target_version_equals_client_version() -> None:
    assert Manager.target.version == agent.VERSION
