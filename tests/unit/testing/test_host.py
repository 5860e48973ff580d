# SPDX-License-Identifier: Apache-2.0
"""Tests of the emulated host whose agent process can crash."""

from pathlib import Path

import pytest

from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.testing.crash_points import CrashPoint
from cyborg_lite.testing.driver_checks import HOSTNAME
from cyborg_lite.testing.host import AgentProcess, CrashableHost, connect_crashable
from cyborg_lite.testing.peers import FakeGlance
from cyborg_lite.testing.preparation_checks import build_handle
from tests.doubles.file_driver import build_bench


def build_host(root: Path, crash_point: CrashPoint) -> CrashableHost:
    return CrashableHost(build_bench(), FakeGlance([]), root, crash_point)


def allocate(agent: AgentProcess) -> AllocatedHandle:
    """Return the first handle that the agent reports."""
    (device,) = agent.report().devices
    return build_handle(device, device.root, device.root.handles[0])


def list_prepared(agent: AgentProcess) -> str:
    (result,) = agent.results
    assert result.device is not None
    return result.device.root.attributes['prepared']


def test_agent_is_started_once_until_restart(tmp_path: Path) -> None:
    host = build_host(tmp_path / 'root', CrashPoint())
    first = host.agent
    assert host.agent is first
    assert host.restart_agent() is not first


def test_prepare_and_release_change_host(tmp_path: Path) -> None:
    host = build_host(tmp_path / 'root', CrashPoint())
    agents, handle = connect_crashable(host), allocate(host.agent)
    agents.prepare(daemon_context(), HOSTNAME, [handle])
    assert set(host.agent.cache.handles) == {handle.uuid}
    host.agent.report()
    assert list_prepared(host.agent) == '0'
    agents.release(daemon_context(), HOSTNAME, [handle])
    assert host.agent.cache.handles == {}
    host.agent.report()
    assert list_prepared(host.agent) == ''


@pytest.mark.parametrize(
    ('number', 'point', 'prepared'),
    [
        (1, 'before the work of prepare', ''),
        (2, 'before the write to prepared/0', ''),
        (3, 'after the write to prepared/0', '0'),
        (4, 'after the work of prepare', '0'),
    ],
)
def test_crash_during_call_raises_host_away(
    tmp_path: Path, number: int, point: str, prepared: str
) -> None:
    crash_point = CrashPoint(number)
    host = build_host(tmp_path / 'root', crash_point)
    agents, handle = connect_crashable(host), allocate(host.agent)
    with crash_point.activate(), pytest.raises(HostAway):
        agents.prepare(daemon_context(), HOSTNAME, [handle])
    assert crash_point.reached == point
    # The files of the host and of the agent persist.
    assert list_prepared(host.agent) == prepared
    agents.prepare(daemon_context(), HOSTNAME, [handle])
    assert set(host.agent.cache.handles) == {handle.uuid}


def test_restarted_agent_has_state_from_crash(tmp_path: Path) -> None:
    crash_point = CrashPoint(3)
    host = build_host(tmp_path / 'root', crash_point)
    handle = allocate(host.agent)
    with crash_point.activate(), pytest.raises(HostAway):
        connect_crashable(host).prepare(daemon_context(), HOSTNAME, [handle])
    # The crashed process removes the handle in its cleanup, which has no effect.
    assert set(host.agent.cache.handles) == {handle.uuid}
    assert host.agent.cache.handles[handle.uuid].boot_id is None
