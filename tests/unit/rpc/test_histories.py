# SPDX-License-Identifier: Apache-2.0
"""Tests of the calls of the conductor about past events and use."""

from cyborg_lite.model.usages import UnitUsage, UsageQuery, UsageReport
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.histories import HistoryCalls
from tests.doubles.recording_caller import RecordingCaller

CONTEXT = RequestContext()


class Calls(HistoryCalls):
    """The calls with a caller that records them."""

    def __init__(self) -> None:
        self._caller = self.caller = RecordingCaller()


def test_list_device_events_parses_answer() -> None:
    calls = Calls()
    calls.caller.answer = []
    assert calls.list_device_events(CONTEXT, 'd') == ()
    assert calls.caller.arguments == {'device_uuid': 'd'}


def test_sum_usages_parses_answer() -> None:
    calls = Calls()
    report = UsageReport((UnitUsage('p', 'PGPU', 'gpu', 1),), end=5)
    calls.caller.answer = wire.dump(report)
    query = UsageQuery(0, 5, 'p')
    assert calls.sum_usages(CONTEXT, query) == report
    assert calls.caller.arguments == {'query': wire.dump(query)}
