# SPDX-License-Identifier: Apache-2.0
"""Deleting accelerator requests, and what only services may do to them."""

import pytest

from tests.unit.api.controllers.patches import INSTANCE, UNKNOWN, bind, unbind
from tests.unit.api.conversation import ADMIN, MEMBER, SERVICE_TOKEN, STRANGER, Client

# --- the service token ---


@pytest.mark.parametrize('headers', [ADMIN, MEMBER])
@pytest.mark.parametrize('roles', [None, '', 'member', 'services,admin'])
def test_who_is_no_service_neither_binds_nor_unbinds(
    nova: Client, bound: list[str], headers: dict[str, str], roles: str | None
) -> None:
    more = {} if roles is None else {'X-Service-Roles': roles}
    caller = nova.as_({**headers, **more})
    fresh = nova.arqs()[0]['uuid']
    answers = [
        caller.patch('/accelerator_requests', {fresh: bind(UNKNOWN)}),
        caller.patch(f'/accelerator_requests/{fresh}', {fresh: bind(UNKNOWN)}),
        caller.patch('/accelerator_requests', {bound[0]: unbind()}),
        caller.delete(f'/accelerator_requests?instance={INSTANCE}'),
        caller.delete(f'/accelerator_requests?instance={UNKNOWN}'),
    ]
    assert [answer.status for answer in answers] == [403] * 5
    for answer in answers:
        assert 'requires a service token' in answer.fault.lower()
        assert 'Compute API' in answer.fault


def test_an_unauthorised_patch_is_refused_before_it_is_read(nova: Client) -> None:
    caller = nova.as_(MEMBER)
    assert caller.send('PATCH', '/accelerator_requests', raw=b'{').status == 403


def test_a_bound_request_is_deleted_by_services_alone(
    nova: Client, bound: list[str]
) -> None:
    free = nova.arqs()[0]['uuid']
    for headers in (ADMIN, MEMBER):
        caller = nova.as_(headers)
        for path in (f'/{bound[0]}', f'?arqs={bound[0]}', f'?arqs={free},{bound[0]}'):
            answer = caller.delete(f'/accelerator_requests{path}')
            assert answer.status == 403
            assert INSTANCE not in answer.fault
    assert free in nova.conductor.arqs
    assert nova.delete(f'/accelerator_requests/{bound[0]}').status == 204


# --- delete ---


def test_a_free_request_is_deleted_by_its_owner(nova: Client) -> None:
    first, second, third = (arq['uuid'] for arq in nova.arqs())
    owner = nova.as_(MEMBER)
    answer = owner.delete(f'/accelerator_requests/{first.upper()}')
    assert (answer.status, answer.body) == (204, b'')
    answer = owner.delete(f'/accelerator_requests?arqs={second},{third.upper()}')
    assert (answer.status, answer.body) == (204, b'')
    assert not nova.conductor.arqs


def test_what_exists_is_deleted_before_the_others_are_complained_of(
    nova: Client,
) -> None:
    uuids = [arq['uuid'] for arq in nova.arqs()]
    for uuid, other in zip(uuids, (UNKNOWN, 'x', '%00'), strict=True):
        answer = nova.delete(f'/accelerator_requests?arqs={other},{uuid}')
        assert answer.status == 404
        assert 'not found' in answer.fault
    assert not nova.conductor.arqs


@pytest.mark.parametrize('identifier', [UNKNOWN, 'x', '%00', '%C3%A9'])
def test_deleting_an_unknown_request_is_not_found(
    nova: Client, identifier: str
) -> None:
    assert nova.delete(f'/accelerator_requests/{identifier}').status == 404


def test_deleting_by_instance_can_be_repeated(nova: Client, bound: list[str]) -> None:
    free = nova.arqs()[0]['uuid']
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
def test_a_delete_selects_in_one_way(nova: Client, query: str) -> None:
    nova.arqs()
    assert nova.delete(f'/accelerator_requests{query}').status == 400
    assert len(nova.conductor.arqs) == 3


def test_a_very_long_list_is_refused(nova: Client) -> None:
    many = ','.join([UNKNOWN] * 1001)
    for method in ('GET', 'DELETE'):
        assert nova.send(method, f'/accelerator_requests?arqs={many}').status == 400


# --- another project, with Nova ---


def test_a_service_covers_an_instance_whatever_its_project(
    nova: Client, bound: list[str]
) -> None:
    """An admin's evacuation may have left the requests in the admin's project."""
    stranger = nova.as_({**STRANGER, **SERVICE_TOKEN})
    path = f'/accelerator_requests?instance={INSTANCE}'
    assert len(stranger.get(path).json['arqs']) == 3
    assert stranger.as_(STRANGER).get(path).json == {'arqs': []}
    assert stranger.get('/accelerator_requests').json == {'arqs': []}
    assert stranger.delete(path).status == 204
    assert not nova.conductor.arqs
