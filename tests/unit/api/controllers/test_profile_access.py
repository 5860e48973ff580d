# SPDX-License-Identifier: Apache-2.0
"""Tests of the access list of a device profile."""

from typing import Any

import pytest

from tests.support.api.conversation import OTHER_MEMBER, OTHER_PROJECT, PROJECT, Client


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client at 2.4 of a service with the profile ``dp1``."""
    client = client.at('2.4')
    client.create_profile('dp1')
    return client


@pytest.fixture
def private(newest: Client) -> Client:
    hidden = [{'op': 'replace', 'path': '/is_public', 'value': False}]
    assert newest.patch('/device_profiles/dp1', hidden).status == 200
    return newest


def test_access_projects_are_added_and_removed(private: Client) -> None:
    path = '/device_profiles/dp1/access'
    assert private.get(path).json == {'projects': []}
    answer = private.post(path, {'projects': [OTHER_PROJECT, PROJECT]})
    assert answer.status == 200
    assert answer.json == {'projects': [OTHER_PROJECT, PROJECT]}
    assert private.as_(OTHER_MEMBER).get('/device_profiles/dp1').status == 200
    assert len(private.as_(OTHER_MEMBER).create_arqs()) == 1
    assert private.delete(f'{path}?value={OTHER_PROJECT}').status == 204
    assert private.get(path).json == {'projects': [PROJECT]}
    assert private.as_(OTHER_MEMBER).get('/device_profiles/dp1').status == 404


@pytest.mark.parametrize(
    'body',
    [[], {}, {'projects': []}, {'projects': 'x'}, {'projects': [5]},
     {'projects': ['']}, {'projects': ['x' * 65]}, {'projects': ['a,b']},
     {'projects': ['a\n']}],
)  # fmt: skip
def test_access_invalid_list_returns_400(private: Client, body: Any) -> None:
    path = '/device_profiles/dp1/access'
    assert private.post(path, body).status == 400
    assert private.get(path).json == {'projects': []}


@pytest.mark.parametrize('arguments', ['', '?value=', '?value=,', '?name=x'])
def test_access_delete_without_projects_returns_400(
    private: Client, arguments: str
) -> None:
    path = '/device_profiles/dp1/access'
    private.post(path, {'projects': [PROJECT]})
    assert private.delete(path + arguments).status == 400
    assert private.get(path).json == {'projects': [PROJECT]}


def test_access_unknown_profile_returns_404(newest: Client) -> None:
    path = '/device_profiles/nobody/access'
    assert newest.get(path).status == 404
    assert newest.post(path, {'projects': [PROJECT]}).status == 404
    assert newest.delete(f'{path}?value=x').status == 404
