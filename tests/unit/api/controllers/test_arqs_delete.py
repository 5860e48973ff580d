# SPDX-License-Identifier: Apache-2.0
"""Tests of deleting ARQs, and of service tokens."""

import pytest

from tests.support.api.conversation import (
    ADMIN,
    MEMBER,
    OTHER_MEMBER,
    SERVICE_TOKEN,
    Client,
)
from tests.support.api.patches import INSTANCE, UNKNOWN, build_bind, build_unbind


@pytest.mark.parametrize('headers', [ADMIN, MEMBER])
@pytest.mark.parametrize('roles', [None, '', 'member', 'services,admin'])
def test_bind_without_service_token_returns_403(
    nova: Client, bound: list[str], headers: dict[str, str], roles: str | None
) -> None:
    service_roles = {} if roles is None else {'X-Service-Roles': roles}
    caller = nova.as_({**headers, **service_roles})
    fresh = nova.create_arqs()[0]['uuid']
    answers = [
        caller.patch('/accelerator_requests', {fresh: build_bind(UNKNOWN)}),
        caller.patch(f'/accelerator_requests/{fresh}', {fresh: build_bind(UNKNOWN)}),
        caller.patch('/accelerator_requests', {bound[0]: build_unbind()}),
        caller.delete(f'/accelerator_requests?instance={INSTANCE}'),
        caller.delete(f'/accelerator_requests?instance={UNKNOWN}'),
    ]
    assert [answer.status for answer in answers] == [403] * 5
    for answer in answers:
        assert 'requires a service token' in answer.fault.lower()
        assert 'Compute API' in answer.fault


def test_patch_is_authorized_before_it_is_parsed(nova: Client) -> None:
    caller = nova.as_(MEMBER)
    assert caller.send('PATCH', '/accelerator_requests', raw=b'{').status == 403


def test_delete_bound_arq_requires_service_token(
    nova: Client, bound: list[str]
) -> None:
    free = nova.create_arqs()[0]['uuid']
    for headers in (ADMIN, MEMBER):
        caller = nova.as_(headers)
        for path in (f'/{bound[0]}', f'?arqs={bound[0]}', f'?arqs={free},{bound[0]}'):
            answer = caller.delete(f'/accelerator_requests{path}')
            assert answer.status == 403
            assert INSTANCE not in answer.fault
    assert free in nova.conductor.arqs
    assert nova.delete(f'/accelerator_requests/{bound[0]}').status == 204


def test_delete_free_arq_by_owner(nova: Client) -> None:
    first, second, third = (arq['uuid'] for arq in nova.create_arqs())
    owner = nova.as_(MEMBER)
    answer = owner.delete(f'/accelerator_requests/{first.upper()}')
    assert (answer.status, answer.body) == (204, b'')
    answer = owner.delete(f'/accelerator_requests?arqs={second},{third.upper()}')
    assert (answer.status, answer.body) == (204, b'')
    assert not nova.conductor.arqs


def test_delete_arqs_deletes_existing_before_error(nova: Client) -> None:
    uuids = [arq['uuid'] for arq in nova.create_arqs()]
    for uuid, unknown in zip(uuids, (UNKNOWN, 'x', '%00'), strict=True):
        answer = nova.delete(f'/accelerator_requests?arqs={unknown},{uuid}')
        assert answer.status == 404
        assert 'not found' in answer.fault
    assert not nova.conductor.arqs


@pytest.mark.parametrize('identifier', ['x', '%00', '%C3%A9'])
def test_delete_unknown_arq_returns_404(nova: Client, identifier: str) -> None:
    assert nova.delete(f'/accelerator_requests/{identifier}').status == 404


def test_delete_by_instance_is_idempotent(nova: Client, bound: list[str]) -> None:
    free = nova.create_arqs()[0]['uuid']
    for instance in (INSTANCE.upper(), INSTANCE):
        answer = nova.delete(f'/accelerator_requests?instance={instance}')
        assert (answer.status, answer.body) == (204, b'')
    assert free in nova.conductor.arqs
    assert not nova.conductor.arqs.keys() & set(bound)


@pytest.mark.parametrize(
    'query',
    [
        '',
        '?',
        '?arqs=',
        '?arqs=,',
        '?instance=',
        '?instance=x',
        f'?instance={INSTANCE}&arqs={UNKNOWN}',
        f'?uuid={UNKNOWN}',
        '/?arqs=',
    ],
)
def test_delete_requires_exactly_one_argument(nova: Client, query: str) -> None:
    nova.create_arqs()
    assert nova.delete(f'/accelerator_requests{query}').status == 400
    assert len(nova.conductor.arqs) == 3


def test_delete_too_many_arqs_returns_400(nova: Client) -> None:
    arq_list = ','.join([UNKNOWN] * 1001)
    for method in ('GET', 'DELETE'):
        assert nova.send(method, f'/accelerator_requests?arqs={arq_list}').status == 400


def test_delete_by_instance_ignores_project(nova: Client, bound: list[str]) -> None:
    """After an evacuation by an admin, the ARQs may belong to the admin project."""
    other_member = nova.as_({**OTHER_MEMBER, **SERVICE_TOKEN})
    path = f'/accelerator_requests?instance={INSTANCE}'
    assert len(other_member.get(path).json['arqs']) == 3
    assert other_member.as_(OTHER_MEMBER).get(path).json == {'arqs': []}
    assert other_member.get('/accelerator_requests').json == {'arqs': []}
    assert other_member.delete(path).status == 204
    assert not nova.conductor.arqs
