# SPDX-License-Identifier: Apache-2.0
"""Tests of the gate: RPCs are served only while the conductor accepts the agent."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.hosts.server_gate import ServerGate
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_agents
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.methods import AGENTS


@pytest.fixture
def bus(conf: cfg.ConfigOpts) -> Iterator[transport.Transport]:
    connected = transport.connect(conf)
    yield connected
    connected.cleanup()


@pytest.fixture
def dispatcher(cache: Cache, journal: Journal, tmp_path: Path) -> Dispatcher:
    discovery = Discovery(Host('compute-1', tmp_path), {}, 60.0)
    preparation = Preparation(discovery, cache, journal, DeviceLocks())
    return Dispatcher(AGENTS, [preparation])


def _is_served(bus: transport.Transport, timeout: float = 0.2) -> bool:
    try:
        connect_agents(bus, timeout).release(daemon_context(), 'compute-1', [])
    except HostAway:
        return False
    return True


def test_gate_serves_only_while_accepted(
    bus: transport.Transport, dispatcher: Dispatcher
) -> None:
    gate = ServerGate(bus, 'compute-1')
    gate.set_services(dispatcher)
    assert not _is_served(bus)
    gate.set_accepted(True)
    gate.set_accepted(True)
    assert _is_served(bus, 60.0)
    gate.set_accepted(False)
    assert not _is_served(bus)
    gate.set_accepted(True)
    assert _is_served(bus, 60.0)
    gate.close()
    gate.set_accepted(True)
    gate.wait()
    assert not _is_served(bus)


def test_gate_accepted_before_endpoints_serves_then(
    bus: transport.Transport, dispatcher: Dispatcher
) -> None:
    gate = ServerGate(bus, 'compute-1')
    gate.set_accepted(True)
    assert not _is_served(bus)
    gate.set_services(dispatcher)
    assert _is_served(bus, 60.0)
    gate.close()
    gate.wait()
