# SPDX-License-Identifier: Apache-2.0
"""Tests of device profiles at microversion 2.4: changes, switches, access."""

from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.model.arqs.project_limits import ResourceUse
from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import (
    NOVA,
    OTHER_MEMBER,
    OTHER_PROJECT,
    PROJECT,
    READER,
    Client,
)
from tests.support.api.patches import INSTANCE, build_bind

GROUP = {'resources:FPGA': '1'}
AVX = 'HW_CPU_X86_AVX'


@pytest.fixture
def newest(client: Client) -> Client:
    """Return a client at 2.4 of a service with the profile ``dp1``."""
    client = client.at('2.4')
    client.create_profile('dp1')
    return client


def test_show_profile_switches_since_2_4(newest: Client) -> None:
    path = '/device_profiles/dp1'
    view = newest.get(path).json['device_profile']
    older = newest.at('2.3').get(path).json['device_profile']
    assert (view['enabled'], view['is_public']) == (True, True)
    assert view == {**older, 'enabled': True, 'is_public': True}


def test_patch_profile_returns_changed_profile(newest: Client) -> None:
    groups = [{'resources:PGPU': 2, f'trait:{AVX}': 'forbidden'}]
    patch = build_replace_patch(
        description='new', groups=groups, enabled=False, is_public=False
    )
    answer = newest.patch('/device_profiles/dp1', patch)
    assert answer.status == 200
    changed = answer.json['device_profile']
    assert changed['description'] == 'new'
    assert changed['groups'] == [{'resources:PGPU': '2', f'trait:{AVX}': 'forbidden'}]
    assert (changed['enabled'], changed['is_public']) == (False, False)
    assert changed['updated_at'] is not None
    assert newest.get('/device_profiles/dp1').json == answer.json


def test_patch_profile_removes_description(newest: Client) -> None:
    newest.patch('/device_profiles/dp1', build_replace_patch(description='x'))
    answer = newest.patch('/device_profiles/dp1', build_replace_patch(description=None))
    assert answer.json['device_profile']['description'] is None


def test_patch_profile_add_replaces_value(newest: Client) -> None:
    patch = [{'op': 'add', 'path': '/description', 'value': 'new'}]
    answer = newest.patch('/device_profiles/dp1', patch)
    assert (answer.status, answer.json['device_profile']['description']) == (200, 'new')


@pytest.mark.parametrize(
    'body',
    [
        [],
        {},
        {'description': 'x'},
        [{'op': 'test', 'path': '/description', 'value': 'x'}],
        [{'op': 'remove', 'path': '/description'}],
        [{'op': 'replace', 'path': '/description'}],
        [{'op': 'replace', 'path': 5, 'value': 'x'}],
        [{'op': 'replace', 'path': 'description', 'value': 'x'}],
        [{'op': 'replace', 'path': '/', 'value': 'x'}],
        [{'op': 'replace', 'path': '//name', 'value': 'x'}],
        build_replace_patch(uuid='x'),
        build_replace_patch(created_at='x'),
        build_replace_patch(description='x') * 2,
        build_replace_patch(description='x' * 256),
        build_replace_patch(description=5),
        build_replace_patch(name=None),
        build_replace_patch(name='a b'),
        build_replace_patch(enabled='true'),
        build_replace_patch(enabled=None),
        build_replace_patch(is_public=1),
        build_replace_patch(groups=[]),
        build_replace_patch(groups=[{'resources:FPGA': 257}]),
        build_replace_patch(
            description='new', groups=[{**GROUP, 'trait:HW_NO': 'required'}]
        ),
    ],
)
def test_patch_profile_invalid_changes_nothing(newest: Client, body: Any) -> None:
    before = newest.get('/device_profiles/dp1').json
    answer = newest.patch('/device_profiles/dp1', body)
    assert answer.status == 400
    assert answer.fault
    assert newest.get('/device_profiles/dp1').json == before


def test_show_profile_by_former_name(newest: Client) -> None:
    newest.patch('/device_profiles/dp1', build_replace_patch(name='dp2'))
    nova = newest.as_(READER, '2.0')
    (profile,) = nova.get('/device_profiles?name=dp1').json['device_profiles']
    assert profile['name'] == 'dp2'
    view = newest.get('/device_profiles/dp1').json['device_profile']
    assert view['uuid'] == profile['uuid']
    assert newest.create_arqs('dp1')[0]['device_profile_name'] == 'dp2'
    body = [{'name': 'dp1', 'groups': [GROUP]}]
    answer = newest.post('/device_profiles', body)
    assert (answer.status, answer.fault) == (409, 'Device profile dp1 already exists.')


@pytest.mark.parametrize(
    ('process', 'service', 'is_shown'),
    [
        ('nova-api keystoneauth1/5', NOVA, False),
        # An unshelve or an evacuation.
        ('nova-conductor keystoneauth1/5', NOVA, True),
        ('', NOVA, True),
        ('nova-api keystoneauth1/5', READER, True),
    ],
)
def test_list_disabled_profile_is_hidden_from_compute_api(
    newest: Client, process: str, service: dict[str, str], is_shown: bool
) -> None:
    caller = newest.as_({**service, 'User-Agent': process}, '2.0')
    path = '/device_profiles?name=dp1'
    assert len(caller.get(path).json['device_profiles']) == 1
    newest.patch('/device_profiles/dp1', build_replace_patch(enabled=False))
    assert bool(caller.get(path).json['device_profiles']) is is_shown
    for answer in (caller.get('/device_profiles'), caller.at('2.4').get(path)):
        assert len(answer.json['device_profiles']) == 1
    assert caller.at('2.2').get('/device_profiles/dp1').status == 200


@pytest.mark.parametrize(
    ('process', 'limit', 'is_shown'),
    [('nova-api', 1, False), ('nova-api', 2, True), ('nova-conductor', 1, True)],
)
def test_list_profile_beyond_limit_is_hidden_from_compute_api(
    newest: Client, process: str, limit: int, is_shown: bool
) -> None:
    """Let the server create fail with 400, before the instance has an allocation."""
    newest.as_(NOVA, '2.0').create_arqs()
    used = ResourceUse('accelerator_requests', limit, 1)
    newest.conductor.answers['list_limits'] = (used,)
    caller = newest.as_({**NOVA, 'User-Agent': f'{process} keystoneauth1/5'}, '2.0')
    answer = caller.get('/device_profiles?name=dp1')
    assert (answer.status, bool(answer.json['device_profiles'])) == (200, is_shown)


def test_create_arqs_disabled_profile_serves_former_instance(newest: Client) -> None:
    nova = newest.as_(NOVA, '2.0')
    (arq,) = nova.create_arqs()
    patch = {arq['uuid']: build_bind()}
    assert nova.patch('/accelerator_requests', patch).status == 202
    newest.patch('/device_profiles/dp1', build_replace_patch(enabled=False))
    body = {'device_profile_name': 'dp1'}
    assert nova.post('/accelerator_requests', body).status == 409
    shelved = f'/accelerator_requests?instance={INSTANCE}'
    assert nova.delete(shelved).status == 204
    assert newest.post('/accelerator_requests', body).status == 409
    (new_arq,) = nova.create_arqs()
    patch_again = {new_arq['uuid']: build_bind(str(uuid4()))}
    answer = nova.patch('/accelerator_requests', patch_again)
    assert (answer.status, 'dp1 is disabled' in answer.fault) == (409, True)
    assert (
        nova.patch('/accelerator_requests', {new_arq['uuid']: build_bind()}).status
        == 202
    )
    (view,) = nova.get(shelved).json['arqs']
    assert view['state'] == 'Bound'


def test_create_profiles_several_at_once(newest: Client) -> None:
    body = [{'name': name, 'groups': [GROUP]} for name in ('dp2', 'dp3')]
    answer = newest.post('/device_profiles', body)
    assert answer.status == 201
    assert list(answer.json) == ['device_profiles']
    assert [profile['name'] for profile in answer.json['device_profiles']] == [
        'dp2',
        'dp3',
    ]
    assert newest.at('2.3').post('/device_profiles', body).status == 400
    answer = newest.post('/device_profiles', body * 51)
    assert (answer.status, 'at most 100' in answer.fault) == (400, True)


@pytest.mark.parametrize('last', ['dp1', 'dp2', 'a b'])
def test_create_profiles_one_invalid_creates_none(newest: Client, last: str) -> None:
    body = [{'name': name, 'groups': [GROUP]} for name in ('dp2', last)]
    assert newest.post('/device_profiles', body).status in (400, 409)
    assert len(newest.conductor.profiles) == 1


def test_create_profile_private(newest: Client) -> None:
    body = [{'name': 'dp2', 'groups': [GROUP], 'is_public': False, 'enabled': False}]
    created = newest.post('/device_profiles', body).json
    assert (created['enabled'], created['is_public']) == (False, False)
    older = [{**body[0], 'name': 'dp3', 'enabled': 'x'}]
    created = newest.at('2.3').post('/device_profiles', older).json
    view = newest.get(f'/device_profiles/{created["uuid"]}').json['device_profile']
    assert (view['enabled'], view['is_public']) == (True, True)
    older[0]['name'] = 'dp4'
    assert newest.post('/device_profiles', older).status == 400


@pytest.mark.parametrize(('trait', 'status'), [(AVX, 201), ('HW_CPU_NO', 400)])
def test_create_profile_standard_traits_since_2_4(
    newest: Client, trait: str, status: int
) -> None:
    body = [{'name': 'dp2', 'groups': [{**GROUP, f'trait:{trait}': 'required'}]}]
    assert newest.at('2.3').post('/device_profiles', body).status == 400
    assert newest.post('/device_profiles', body).status == status


@pytest.fixture
def private(newest: Client) -> Client:
    newest.patch('/device_profiles/dp1', build_replace_patch(is_public=False))
    return newest


def test_private_profile_is_hidden_from_other_projects(private: Client) -> None:
    for version in ('2.0', '2.4'):
        patch_again = private.as_(OTHER_MEMBER, version)
        assert patch_again.get('/device_profiles').json['device_profiles'] == []
        body = {'device_profile_name': 'dp1'}
        assert patch_again.post('/accelerator_requests', body).status == 404
    assert patch_again.get('/device_profiles/dp1').status == 404
    assert len(private.get('/device_profiles').json['device_profiles']) == 1


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
