# SPDX-License-Identifier: Apache-2.0
"""Tests of the calls of the conductor about the job table."""

import pytest

from cyborg_lite.model.queries import Query
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.jobs import JobCalls
from tests.doubles.recording_caller import RecordingCaller

CONTEXT = RequestContext()


class Calls(JobCalls):
    """The calls with a caller that records them."""

    def __init__(self) -> None:
        self._caller = self.caller = RecordingCaller()


def test_list_jobs_sends_query() -> None:
    calls = Calls()
    calls.caller.answer = []
    query = Query(filters={'state': ('failed',)})
    assert calls.list_jobs(CONTEXT, query) == ()
    assert calls.caller.arguments == {'query': wire.dump(query)}


@pytest.mark.parametrize('method', ['retry_job', 'cancel_job'])
def test_decision_names_job(method: str) -> None:
    calls = Calls()
    getattr(calls, method)(CONTEXT, 'u')
    assert (calls.caller.method, calls.caller.arguments) == (method, {'uuid': 'u'})
