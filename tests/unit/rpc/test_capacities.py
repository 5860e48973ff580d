# SPDX-License-Identifier: Apache-2.0
"""Tests of the calls of the conductor about the capacity for servers."""

import pytest

from cyborg_lite.exceptions import DeviceProfileNotFound
from cyborg_lite.model.server_capacity import HostCapacity, ProfileCapacity, Shortage
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.capacities import CapacityCalls
from cyborg_lite.rpc.context import RequestContext
from tests.doubles.recording_caller import RecordingCaller

CONTEXT = RequestContext()
SHORTAGE = Shortage((0,), ('PGPU',), (), 'No unit is free.')
CAPACITY = ProfileCapacity(3, (HostCapacity('compute-1', 3, SHORTAGE),), SHORTAGE)


class Calls(CapacityCalls):
    """The calls with a caller that records them."""

    def __init__(self) -> None:
        self._caller = self.caller = RecordingCaller()


@pytest.mark.parametrize('hostname', [None, 'compute-1'])
def test_count_capacity_parses_answer(hostname: str | None) -> None:
    calls = Calls()
    calls.caller.answer = wire.dump(CAPACITY)
    assert calls.count_profile_capacity(CONTEXT, 'p', hostname) == CAPACITY
    assert calls.caller.arguments == {'uuid': 'p', 'hostname': hostname}


def test_count_capacity_unknown_profile_raises() -> None:
    calls = Calls()
    calls.caller.error = DeviceProfileNotFound(name='p')
    with pytest.raises(DeviceProfileNotFound):
        calls.count_profile_capacity(CONTEXT, 'p')
