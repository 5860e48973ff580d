# SPDX-License-Identifier: Apache-2.0
"""Binding and unbinding, as Nova and the command line clients ask for them."""

from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.model.arqs import State
from tests.unit.api.controllers.patches import (
    FIELDS,
    INSTANCE,
    PROVIDER,
    UNKNOWN,
    Operation,
    add,
    bind,
    unbind,
    with_field,
    without,
)
from tests.unit.api.conversation import ADMIN, MEMBER, PROJECT, SERVICE_TOKEN, Client


def test_a_bind_answers_when_it_is_stored(nova: Client) -> None:
    uuids = [arq['uuid'] for arq in nova.arqs()]
    answer = nova.patch('/accelerator_requests', dict.fromkeys(uuids, bind()))
    assert answer.status == 202
    assert answer.body == b''
    assert 'Content-Type' not in answer.headers
    listed = nova.get(f'/accelerator_requests?instance={INSTANCE}').json['arqs']
    assert [arq['uuid'] for arq in listed] == uuids


def test_a_bind_by_path_is_the_same(nova: Client) -> None:
    uuid = nova.arqs()[0]['uuid']
    path = f'/accelerator_requests/{uuid.upper()}'
    assert nova.patch(path, {uuid: bind()}).status == 202
    assert nova.conductor.arqs[uuid].state is State.BOUND
    assert nova.patch(path, {uuid.replace('-', ''): unbind()}).status == 202
    assert nova.conductor.arqs[uuid].state is State.UNBOUND


def test_uuids_of_a_patch_are_normalised(nova: Client) -> None:
    uuid = nova.arqs()[0]['uuid']
    patch = bind(INSTANCE.upper(), device_rp_uuid=PROVIDER.replace('-', ''))
    assert nova.patch('/accelerator_requests', {uuid.upper(): patch}).status == 202
    assert nova.conductor.arqs[uuid].instance_uuid == INSTANCE
    assert nova.conductor.arqs[uuid].device_rp_uuid == PROVIDER


def test_unbinding_clears_the_request_and_can_be_repeated(
    nova: Client, bound: list[str]
) -> None:
    for _ in range(2):
        answer = nova.patch('/accelerator_requests', {bound[0]: unbind()})
        assert (answer.status, answer.body) == (202, b'')
    arq = nova.get(f'/accelerator_requests/{bound[0]}').json
    assert arq['state'] == 'Unbound'
    assert [arq[field] for field in FIELDS] == [None] * 3
    # It can be bound again.
    assert nova.patch('/accelerator_requests', {bound[0]: bind(UNKNOWN)}).status == 202


@pytest.mark.parametrize('removed', [unbind()[:1], [*unbind(), *unbind()]])
def test_removing_some_fields_removes_all(
    nova: Client, bound: list[str], removed: list[Operation]
) -> None:
    assert nova.patch('/accelerator_requests', {bound[0]: removed}).status == 202
    assert nova.conductor.arqs[bound[0]].state is State.UNBOUND


@pytest.mark.parametrize(
    'patch',
    [
        None,
        [],
        {},
        'x',
        5,
        [5],
        [None],
        [[]],
        [{}],
        [{'op': 'add'}],
        [{'path': '/hostname'}],
        [{'op': 5, 'path': '/hostname'}],
        [{'op': 'add', 'path': 5}],
        [{'op': 'add', 'path': '/hostname'}],
        [{'op': 'replace', 'path': '/hostname', 'value': 'x'}],
        [{'op': 'test', 'path': '/hostname', 'value': 'x'}],
        [*bind()[:2], unbind()[2]],
        bind(INSTANCE, add('state', 'Bound')),
        bind(INSTANCE, add('', 'x')),
        bind(INSTANCE, add('hostname', 'again')),
        bind(INSTANCE, {'op': 'add', 'path': 'hostname', 'value': 'x'}),
        bind(INSTANCE, {'op': 'add', 'path': '/hostname/x', 'value': 'x'}),
        *(without(field) for field in FIELDS),
        *(with_field(field, None) for field in FIELDS),
        *(with_field(field, 5) for field in FIELDS),
        *(with_field(field, '') for field in FIELDS),
        *(with_field(field, []) for field in FIELDS),
        bind('x'),
        bind(device_rp_uuid='x'),
        bind(hostname='x' * 256),
        bind(hostname='a\0b'),
        bind(hostname='\ud800'),
    ],
)
def test_a_wrong_patch_changes_nothing(nova: Client, patch: Any) -> None:
    first, second, _ = (arq['uuid'] for arq in nova.arqs())
    for body in ({first: patch}, {first: bind(), second: patch}):
        answer = nova.patch('/accelerator_requests', body)
        assert answer.status == 400
        assert answer.fault
    assert {arq.state for arq in nova.conductor.arqs.values()} == {State.INITIAL}


@pytest.mark.parametrize(
    'body', [{}, [], [bind()], 'x', 5, None, {'x': bind()}, {'': bind()}, {'5': bind()}]
)
def test_a_patch_names_requests_by_uuid(nova: Client, body: Any) -> None:
    raw = b'null' if body is None else None
    assert nova.send('PATCH', '/accelerator_requests', body, raw=raw).status == 400


def test_all_requests_of_a_patch_are_bound_or_all_are_unbound(
    nova: Client, bound: list[str]
) -> None:
    fresh = nova.arqs()[0]['uuid']
    body = {bound[0]: unbind(), fresh: bind(UNKNOWN)}
    assert nova.patch('/accelerator_requests', body).status == 400
    assert nova.conductor.arqs[bound[0]].state is State.BOUND


def test_one_request_is_named_once(nova: Client) -> None:
    uuid = nova.arqs()[0]['uuid']
    body = {uuid: bind(), uuid.upper(): bind(UNKNOWN)}
    assert nova.patch('/accelerator_requests', body).status == 400


def test_the_path_must_be_named_in_the_body(nova: Client) -> None:
    first, second, _ = (arq['uuid'] for arq in nova.arqs())
    for path in (second, 'x', UNKNOWN):
        answer = nova.patch(f'/accelerator_requests/{path}', {first: bind()})
        assert answer.status == 400


@pytest.mark.parametrize('field', FIELDS)
def test_a_missing_field_is_named(nova: Client, field: str) -> None:
    uuid = nova.arqs()[0]['uuid']
    answer = nova.patch('/accelerator_requests', {uuid: without(field)})
    assert field in answer.fault


def test_an_unknown_request_cannot_be_bound(nova: Client) -> None:
    answer = nova.patch('/accelerator_requests', {UNKNOWN: bind()})
    assert (answer.status, UNKNOWN in answer.fault) == (404, True)


def test_an_instance_gets_its_requests_once(nova: Client, bound: list[str]) -> None:
    fresh = nova.arqs()[0]['uuid']
    answer = nova.patch('/accelerator_requests', {fresh: bind()})
    assert (answer.status, INSTANCE in answer.fault) == (400, True)


def test_a_bound_request_is_not_bound_again(nova: Client, bound: list[str]) -> None:
    body = dict.fromkeys(bound, bind())
    answer = nova.patch('/accelerator_requests', body)
    assert (answer.status, 'Bound' in answer.fault) == (409, True)


# --- project_id in a patch ---


@pytest.mark.parametrize(
    ('headers', 'version', 'status'),
    [
        (ADMIN, '2.0', 406),
        (ADMIN, '2.1', 202),
        (ADMIN, '2.3', 202),
        (MEMBER, '2.0', 406),
        (MEMBER, '2.1', 403),  # even its own project
    ],
)
def test_who_may_give_a_project(
    nova: Client, headers: dict[str, str], version: str, status: int
) -> None:
    uuid = nova.arqs()[0]['uuid']
    patch = bind(INSTANCE, add('project_id', PROJECT))
    caller = nova.as_({**headers, **SERVICE_TOKEN}, version)
    answer = caller.patch('/accelerator_requests', {uuid: patch})
    assert answer.status == status
    if status == 406:
        assert '2.1' in answer.fault


@pytest.mark.parametrize('project', [None, '', 5, [], 'x' * 65, 'a\0b'])
def test_a_project_is_a_short_string(nova: Client, project: Any) -> None:
    uuid = nova.arqs()[0]['uuid']
    patch = bind(INSTANCE, add('project_id', project))
    caller = nova.as_({**ADMIN, **SERVICE_TOKEN}, '2.1')
    assert caller.patch('/accelerator_requests', {uuid: patch}).status == 400


def test_the_given_project_owns_the_request(nova: Client) -> None:
    uuid = nova.arqs()[0]['uuid']
    patch = bind(INSTANCE, add('project_id', 'theirs'))
    caller = nova.as_({**ADMIN, **SERVICE_TOKEN}, '2.1')
    caller.patch('/accelerator_requests', {uuid: patch})
    assert nova.conductor.arqs[uuid].project_id == 'theirs'
    assert nova.patch('/accelerator_requests', {uuid: bind(str(uuid4()))}).status == 409
