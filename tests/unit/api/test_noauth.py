# SPDX-License-Identifier: Apache-2.0
"""Tests of the middleware for auth_strategy = noauth."""

import pytest

from cyborg_lite.api.noauth import PROJECT
from tests.support.api.conversation import Client


@pytest.mark.parametrize(
    ('token', 'user', 'project', 'admin'),
    [
        ('admin', 'admin', PROJECT, True),
        ('admin:p', 'admin', 'p', True),
        ('joe', 'joe', PROJECT, False),
        ('joe:p', 'joe', 'p', False),
        ('joe:', 'joe', PROJECT, False),
        ('joe:p:q', 'joe', 'p:q', False),
        ('Admin', 'Admin', PROJECT, False),
    ],
)
def test_token_names_user_and_project(
    client: Client, token: str, user: str, project: str, admin: bool
) -> None:
    answer = client.as_({'X-Auth-Token': token}).get('/device_profiles')
    assert answer.status == 200
    caller = client.conductor.callers[-1]
    assert (caller.user_id, caller.project_id) == (user, project)
    assert caller.is_admin is admin
    roles = ['admin', 'manager', 'member', 'reader'] if admin else ['member', 'reader']
    assert caller.roles == roles
    assert not caller.service_request


@pytest.mark.parametrize(
    'headers',
    [
        {},
        {'X-Auth-Token': ''},
        {'X-Auth-Token': ':p'},
        {'X-Auth-Token': 'x' * 65},
        {'X-Auth-Token': 'x:' + 'y' * 65},
        {'X-User-Id': 'u', 'X-Roles': 'admin', 'X-Project-Id': 'p' * 65},
    ],
)
def test_missing_identity_returns_401(client: Client, headers: dict[str, str]) -> None:
    answer = client.as_(headers).get('/device_profiles')
    assert answer.status == 401
    assert answer.headers['WWW-Authenticate'] == 'Keystone uri=""'
    assert answer.headers['Content-Type'] == 'application/json'
    assert answer.json == {
        'error': {
            'code': 401,
            'title': 'Unauthorized',
            'message': 'The request you have made requires authentication.',
        }
    }
    assert not client.conductor.callers


@pytest.mark.parametrize(
    'project_headers',
    [
        {'X-Project-Id': ''},
        {'X-Project-Id': ' '},
        {'X-Domain-Id': 'default'},
        {'Openstack-System-Scope': 'all'},
        {'X-Project-Id': 'p', 'X-Domain-Id': 'default'},
        {'X-Project-Id': 'p', 'Openstack-System-Scope': 'all'},
    ],
)
def test_missing_project_is_refused(
    client: Client, project_headers: dict[str, str]
) -> None:
    headers = {'X-User-Id': 'u', 'X-Roles': 'admin,member,reader', **project_headers}
    answer = client.as_(headers).get('/accelerator_requests')
    assert answer.status == 403
    assert 'cyborg:arq:get_all' in answer.fault


def test_identity_headers_precede_token(client: Client) -> None:
    headers = {'X-Auth-Token': 'admin', 'X-Roles': 'reader', 'X-Project-Id': 'p'}
    assert client.as_(headers).get('/devices').status == 403


@pytest.mark.parametrize(
    ('roles', 'service'),
    [('service', True), ('a, service ,b', True), ('services', False), ('', False)],
)
def test_service_roles_are_trusted(client: Client, roles: str, service: bool) -> None:
    headers = {'X-Auth-Token': 'joe', 'X-Service-Roles': roles}
    client.as_(headers).get('/accelerator_requests')
    assert client.conductor.callers[-1].service_request is service
