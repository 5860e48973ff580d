# SPDX-License-Identifier: Apache-2.0
"""The call about the topology of a host, as it is sent and answered."""

from typing import Any
from unittest import mock

from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.host_topology import TopologyCalls
from cyborg_lite.rpc.transport import Caller
from tests.builders.host_topologies import HOST, build_topology


def test_show_host_topology_needs_newest_conductor() -> None:
    caller = mock.create_autospec(Caller, instance=True)
    caller.call.return_value = wire.dump(build_topology())
    calls = TopologyCalls()
    calls._caller = caller
    assert calls.show_host_topology(daemon_context(), HOST) == build_topology()
    arguments: dict[str, Any] = caller.call.call_args.kwargs
    assert arguments == {'since': '1.8', 'hostname': HOST}
