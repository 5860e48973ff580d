# SPDX-License-Identifier: Apache-2.0
"""The access list of a device profile that is not public."""

from typing import Any

import pytest

from tests.unit.api.conversation import OTHER_PROJECT, PROJECT, STRANGER, Client


@pytest.fixture
def newest(client: Client) -> Client:
    """An administrator, and a profile ``dp1``."""
    client = client.at('2.4')
    client.profile('dp1')
    return client


@pytest.fixture
def private(newest: Client) -> Client:
    hidden = [{'op': 'replace', 'path': '/is_public', 'value': False}]
    assert newest.patch('/device_profiles/dp1', hidden).status == 200
    return newest


def test_projects_come_and_go(private: Client) -> None:
    path = '/device_profiles/dp1/access'
    assert private.get(path).json == {'projects': []}
    answer = private.post(path, {'projects': [OTHER_PROJECT, PROJECT]})
    assert answer.status == 200
    assert answer.json == {'projects': [OTHER_PROJECT, PROJECT]}
    assert private.as_(STRANGER).get('/device_profiles/dp1').status == 200
    assert len(private.as_(STRANGER).arqs()) == 1
    assert private.delete(f'{path}?value={OTHER_PROJECT}').status == 204
    assert private.get(path).json == {'projects': [PROJECT]}
    assert private.as_(STRANGER).get('/device_profiles/dp1').status == 404


@pytest.mark.parametrize(
    'body',
    [[], {}, {'projects': []}, {'projects': 'x'}, {'projects': [5]},
     {'projects': ['']}, {'projects': ['x' * 65]}, {'projects': ['a,b']},
     {'projects': ['a\n']}],
)  # fmt: skip
def test_a_wrong_list_is_refused(private: Client, body: Any) -> None:
    path = '/device_profiles/dp1/access'
    assert private.post(path, body).status == 400
    assert private.get(path).json == {'projects': []}


@pytest.mark.parametrize('arguments', ['', '?value=', '?value=,', '?name=x'])
def test_no_project_never_means_all(private: Client, arguments: str) -> None:
    path = '/device_profiles/dp1/access'
    private.post(path, {'projects': [PROJECT]})
    assert private.delete(path + arguments).status == 400
    assert private.get(path).json == {'projects': [PROJECT]}


def test_the_list_of_an_unknown_profile_is_not_found(newest: Client) -> None:
    path = '/device_profiles/nobody/access'
    assert newest.get(path).status == 404
    assert newest.post(path, {'projects': [PROJECT]}).status == 404
    assert newest.delete(f'{path}?value=x').status == 404


def test_older_clients_have_no_access_list(private: Client) -> None:
    answer = private.at('2.3').get('/device_profiles/dp1/access')
    assert answer.status == 406
    assert '2.4' in answer.fault
