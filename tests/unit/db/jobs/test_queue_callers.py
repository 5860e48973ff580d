# SPDX-License-Identifier: Apache-2.0
"""Caller of the request in the payload of a job."""

import pytest

from cyborg_lite.db.jobs.queue import add_caller
from cyborg_lite.model.jobs import read_caller
from cyborg_lite.rpc.context import RequestContext, request_context


def test_add_caller_of_current_request_is_read_again() -> None:
    RequestContext(
        request_id='req-1', global_request_id='req-0', user_id='joe', project_id='lab'
    )
    payload = add_caller({'hostname': 'h'}, 'req-1')
    assert payload['hostname'] == 'h'
    assert read_caller(payload) == {
        'global_request_id': 'req-0',
        'user_id': 'joe',
        'project_id': 'lab',
    }


@pytest.mark.parametrize('request_id', [None, 'req-2'])
def test_add_caller_of_other_request_adds_nothing(request_id: str | None) -> None:
    RequestContext(request_id='req-1', user_id='joe')
    assert add_caller({'hostname': 'h'}, request_id) == {'hostname': 'h'}


@pytest.mark.parametrize('value', [None, 'joe', {'user_id': 3, 'roles': 'admin'}])
def test_read_caller_ignores_malformed_values(value: object) -> None:
    assert read_caller({'caller': value}) == {}


def test_request_context_has_caller_of_job() -> None:
    caller = {'user_id': 'joe', 'project_id': 'lab', 'global_request_id': 'req-0'}
    context = request_context('req-1', caller)
    assert (context.user_id, context.project_id) == ('joe', 'lab')
    # A context of the same request inherits the caller, another does not.
    assert request_context('req-1').global_request_id == 'req-0'
    assert request_context('req-2').global_request_id is None
