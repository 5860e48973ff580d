# SPDX-License-Identifier: Apache-2.0
"""Tests of binding and unbinding ARQs."""

from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.model.arqs.arqs import State
from tests.support.api.conversation import ADMIN, MEMBER, PROJECT, SERVICE_TOKEN, Client
from tests.support.api.patches import (
    FIELDS,
    INSTANCE,
    PROVIDER,
    UNKNOWN,
    Operation,
    build_add,
    build_bind,
    build_bind_with,
    build_bind_without,
    build_unbind,
)


def test_bind_returns_202(nova: Client) -> None:
    uuids = [arq['uuid'] for arq in nova.create_arqs()]
    answer = nova.patch('/accelerator_requests', dict.fromkeys(uuids, build_bind()))
    assert answer.status == 202
    assert answer.body == b''
    assert 'Content-Type' not in answer.headers
    listed = nova.get(f'/accelerator_requests?instance={INSTANCE}').json['arqs']
    assert [arq['uuid'] for arq in listed] == uuids


def test_bind_by_path_is_the_same(nova: Client) -> None:
    uuid = nova.create_arqs()[0]['uuid']
    path = f'/accelerator_requests/{uuid.upper()}'
    assert nova.patch(path, {uuid: build_bind()}).status == 202
    assert nova.conductor.arqs[uuid].state is State.BOUND
    assert nova.patch(path, {uuid.replace('-', ''): build_unbind()}).status == 202
    assert nova.conductor.arqs[uuid].state is State.UNBOUND


def test_patch_uuids_are_normalized(nova: Client) -> None:
    uuid = nova.create_arqs()[0]['uuid']
    patch = build_bind(INSTANCE.upper(), device_rp_uuid=PROVIDER.replace('-', ''))
    assert nova.patch('/accelerator_requests', {uuid.upper(): patch}).status == 202
    assert nova.conductor.arqs[uuid].instance_uuid == INSTANCE
    assert nova.conductor.arqs[uuid].device_rp_uuid == PROVIDER


def test_unbind_clears_fields_and_is_idempotent(nova: Client, bound: list[str]) -> None:
    for _ in range(2):
        answer = nova.patch('/accelerator_requests', {bound[0]: build_unbind()})
        assert (answer.status, answer.body) == (202, b'')
    arq = nova.get(f'/accelerator_requests/{bound[0]}').json
    assert arq['state'] == 'Unbound'
    assert [arq[field] for field in FIELDS] == [None] * 3
    # The ARQ can be bound again.
    assert (
        nova.patch('/accelerator_requests', {bound[0]: build_bind(UNKNOWN)}).status
        == 202
    )


@pytest.mark.parametrize(
    'removed', [build_unbind()[:1], [*build_unbind(), *build_unbind()]]
)
def test_unbind_some_fields_removes_all(
    nova: Client, bound: list[str], removed: list[Operation]
) -> None:
    assert nova.patch('/accelerator_requests', {bound[0]: removed}).status == 202
    assert nova.conductor.arqs[bound[0]].state is State.UNBOUND


@pytest.mark.parametrize(
    'patch',
    [
        [],
        'x',
        [5],
        [{'op': 'add'}],
        [{'path': '/hostname'}],
        [{'op': 'add', 'path': 5}],
        [{'op': 'add', 'path': '/hostname'}],
        [{'op': 'replace', 'path': '/hostname', 'value': 'x'}],
        [*build_bind()[:2], build_unbind()[2]],
        build_bind(INSTANCE, build_add('state', 'Bound')),
        build_bind(INSTANCE, build_add('', 'x')),
        build_bind(INSTANCE, build_add('hostname', 'again')),
        build_bind(INSTANCE, {'op': 'add', 'path': 'hostname', 'value': 'x'}),
        build_bind(INSTANCE, {'op': 'add', 'path': '/hostname/x', 'value': 'x'}),
        *(build_bind_without(field) for field in FIELDS),
        *(build_bind_with(field, None) for field in FIELDS),
        *(build_bind_with(field, 5) for field in FIELDS),
        *(build_bind_with(field, '') for field in FIELDS),
        *(build_bind_with(field, []) for field in FIELDS),
        build_bind('x'),
        build_bind(device_rp_uuid='x'),
        build_bind(hostname='x' * 256),
        build_bind(hostname='a\0b'),
        build_bind(hostname='\ud800'),
    ],
)
def test_patch_invalid_changes_nothing(nova: Client, patch: Any) -> None:
    first, second, _ = (arq['uuid'] for arq in nova.create_arqs())
    for body in ({first: patch}, {first: build_bind(), second: patch}):
        answer = nova.patch('/accelerator_requests', body)
        assert answer.status == 400
        assert answer.fault
    assert {arq.state for arq in nova.conductor.arqs.values()} == {State.INITIAL}


@pytest.mark.parametrize('body', [{}, [], {'x': build_bind()}, {'': build_bind()}])
def test_patch_key_must_be_uuid(nova: Client, body: Any) -> None:
    assert nova.patch('/accelerator_requests', body).status == 400


def test_patch_binds_all_arqs_or_unbinds_all(nova: Client, bound: list[str]) -> None:
    fresh = nova.create_arqs()[0]['uuid']
    body = {bound[0]: build_unbind(), fresh: build_bind(UNKNOWN)}
    assert nova.patch('/accelerator_requests', body).status == 400
    assert nova.conductor.arqs[bound[0]].state is State.BOUND


def test_patch_by_path_must_contain_arq(nova: Client) -> None:
    first, second, _ = (arq['uuid'] for arq in nova.create_arqs())
    for path in (second, 'x', UNKNOWN):
        answer = nova.patch(f'/accelerator_requests/{path}', {first: build_bind()})
        assert answer.status == 400


@pytest.mark.parametrize(
    ('patch', 'reason'),
    [
        ([*build_bind(), *build_unbind()], 'the operations must be all add or all'),
        ([build_add('hostname', 'a')], 'lacks device_rp_uuid, instance_uuid.'),
        (build_bind('x'), '/instance_uuid must be a UUID.'),
        (build_bind_with('device_rp_uuid', 5), '/device_rp_uuid must be a UUID.'),
        (build_bind(hostname=''), '/hostname must be a string of 1 to 255 characters'),
        (build_bind(INSTANCE, build_add('hostname', 'b')), '/hostname is repeated.'),
        ([build_add('state', 'Bound')], 'the path /state does not exist.'),
    ],
)
def test_patch_invalid_names_reason(
    nova: Client, patch: list[Operation], reason: str
) -> None:
    uuid = nova.create_arqs()[0]['uuid']
    assert reason in nova.patch('/accelerator_requests', {uuid: patch}).fault
    body = {uuid: build_bind(), uuid.upper(): build_bind()}
    assert f'{uuid} is repeated' in nova.patch('/accelerator_requests', body).fault


def test_bind_unknown_arq_returns_404(nova: Client) -> None:
    answer = nova.patch('/accelerator_requests', {UNKNOWN: build_bind()})
    assert (answer.status, UNKNOWN in answer.fault) == (404, True)


def test_bind_instance_twice_is_refused(nova: Client, bound: list[str]) -> None:
    fresh = nova.create_arqs()[0]['uuid']
    answer = nova.patch('/accelerator_requests', {fresh: build_bind()})
    assert (answer.status, INSTANCE in answer.fault) == (400, True)


def test_bind_bound_arq_is_refused(nova: Client, bound: list[str]) -> None:
    body = dict.fromkeys(bound, build_bind())
    answer = nova.patch('/accelerator_requests', body)
    assert (answer.status, 'Bound' in answer.fault) == (409, True)


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
def test_bind_project_requires_admin_and_2_1(
    nova: Client, headers: dict[str, str], version: str, status: int
) -> None:
    uuid = nova.create_arqs()[0]['uuid']
    patch = build_bind(INSTANCE, build_add('project_id', PROJECT))
    caller = nova.as_({**headers, **SERVICE_TOKEN}, version)
    answer = caller.patch('/accelerator_requests', {uuid: patch})
    assert answer.status == status
    if status == 406:
        assert '2.1' in answer.fault


@pytest.mark.parametrize('project', [None, '', 5, [], 'x' * 65, 'a\0b'])
def test_bind_project_must_be_short_text(nova: Client, project: Any) -> None:
    uuid = nova.create_arqs()[0]['uuid']
    patch = build_bind(INSTANCE, build_add('project_id', project))
    caller = nova.as_({**ADMIN, **SERVICE_TOKEN}, '2.1')
    assert caller.patch('/accelerator_requests', {uuid: patch}).status == 400


def test_bind_project_owns_arq(nova: Client) -> None:
    uuid = nova.create_arqs()[0]['uuid']
    patch = build_bind(INSTANCE, build_add('project_id', 'theirs'))
    caller = nova.as_({**ADMIN, **SERVICE_TOKEN}, '2.1')
    caller.patch('/accelerator_requests', {uuid: patch})
    assert nova.conductor.arqs[uuid].project_id == 'theirs'
    assert (
        nova.patch('/accelerator_requests', {uuid: build_bind(str(uuid4()))}).status
        == 409
    )
