# SPDX-License-Identifier: Apache-2.0
"""Tests of the calls of the conductor about the cleaning of units."""

import pytest

from cyborg_lite.model.cleaning import DeviceCleanings, UnitSelection
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.cleanings import CleaningCalls
from cyborg_lite.rpc.context import RequestContext
from tests.doubles.recording_caller import RecordingCaller

CONTEXT = RequestContext()


class Calls(CleaningCalls):
    """The calls with a caller that records them."""

    def __init__(self) -> None:
        self._caller = self.caller = RecordingCaller()


def test_list_cleanings_parses_answer() -> None:
    calls = Calls()
    calls.caller.answer = wire.dump(DeviceCleanings())
    assert calls.list_cleanings(CONTEXT, 'd') == DeviceCleanings()
    assert calls.caller.arguments == {'device_uuid': 'd'}


@pytest.mark.parametrize('method', ['retry_cleaning', 'accept_units'])
def test_decision_names_units_and_actor(method: str) -> None:
    calls = Calls()
    calls.caller.answer = 2
    selection = UnitSelection('d', '0000:3b:00.0')
    assert getattr(calls, method)(CONTEXT, selection, 'admin') == 2
    assert calls.caller.method == method
    assert calls.caller.arguments == {
        'selection': wire.dump(selection),
        'actor': 'admin',
    }
