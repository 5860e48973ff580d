# SPDX-License-Identifier: Apache-2.0
"""Device profiles at 2.4: changed, renamed, switched off, and hidden from projects."""

from typing import Any
from uuid import uuid4

import pytest

from tests.unit.api.controllers.patches import INSTANCE, bind
from tests.unit.api.conversation import (
    ADMIN,
    NOVA,
    READER,
    STRANGER,
    Client,
)

GROUP = {'resources:FPGA': '1'}
AVX = 'HW_CPU_X86_AVX'


def replacing(**values: Any) -> list[dict[str, Any]]:
    return [
        {'op': 'replace', 'path': f'/{field}', 'value': value}
        for field, value in values.items()
    ]


@pytest.fixture
def newest(client: Client) -> Client:
    """An administrator, and a profile ``dp1``."""
    client = client.at('2.4')
    client.profile('dp1')
    return client


def test_only_the_newest_clients_read_the_switches(newest: Client) -> None:
    path = '/device_profiles/dp1'
    shown = newest.get(path).json['device_profile']
    older = newest.at('2.3').get(path).json['device_profile']
    assert (shown['enabled'], shown['is_public']) == (True, True)
    assert shown == {**older, 'enabled': True, 'is_public': True}


def test_a_patch_answers_with_the_profile_as_it_is_then(newest: Client) -> None:
    groups = [{'resources:PGPU': 2, f'trait:{AVX}': 'forbidden'}]
    patch = replacing(description='new', groups=groups, enabled=False, is_public=False)
    answer = newest.patch('/device_profiles/dp1', patch)
    assert answer.status == 200
    changed = answer.json['device_profile']
    assert changed['description'] == 'new'
    assert changed['groups'] == [{'resources:PGPU': '2', f'trait:{AVX}': 'forbidden'}]
    assert (changed['enabled'], changed['is_public']) == (False, False)
    assert changed['updated_at'] is not None
    assert newest.get('/device_profiles/dp1').json == answer.json


def test_a_description_can_be_taken_away(newest: Client) -> None:
    newest.patch('/device_profiles/dp1', replacing(description='x'))
    answer = newest.patch('/device_profiles/dp1', replacing(description=None))
    assert answer.json['device_profile']['description'] is None


def test_to_add_what_is_there_is_to_replace_it(newest: Client) -> None:
    patch = [{'op': 'add', 'path': '/description', 'value': 'new'}]
    answer = newest.patch('/device_profiles/dp1', patch)
    assert (answer.status, answer.json['device_profile']['description']) == (200, 'new')


@pytest.mark.parametrize('version', [None, '2.0', '2.1', '2.2', '2.3'])
def test_older_clients_have_no_patch(newest: Client, version: str | None) -> None:
    older = newest.as_(ADMIN)
    older.version = version
    answer = older.patch('/device_profiles/dp1', replacing(name='dp2'))
    assert answer.status == 405
    assert answer.headers['Allow'] == 'GET, HEAD, DELETE'


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
        replacing(uuid='x'),
        replacing(created_at='x'),
        replacing(description='x') * 2,
        replacing(description='x' * 256),
        replacing(description=5),
        replacing(name=None),
        replacing(name='a b'),
        replacing(enabled='true'),
        replacing(enabled=None),
        replacing(is_public=1),
        replacing(groups=[]),
        replacing(groups=[{'resources:FPGA': 257}]),
        replacing(description='new', groups=[{**GROUP, 'trait:HW_NO': 'required'}]),
    ],
)
def test_a_wrong_patch_is_refused_and_changes_nothing(
    newest: Client, body: Any
) -> None:
    before = newest.get('/device_profiles/dp1').json
    answer = newest.patch('/device_profiles/dp1', body)
    assert answer.status == 400
    assert answer.fault
    assert newest.get('/device_profiles/dp1').json == before


def test_an_unknown_profile_is_not_patched(newest: Client) -> None:
    assert newest.patch('/device_profiles/x', replacing(name='y')).status == 404


def test_a_former_name_goes_on_resolving(newest: Client) -> None:
    newest.patch('/device_profiles/dp1', replacing(name='dp2'))
    nova = newest.as_(READER, '2.0')
    (found,) = nova.get('/device_profiles?name=dp1').json['device_profiles']
    assert found['name'] == 'dp2'
    shown = newest.get('/device_profiles/dp1').json['device_profile']
    assert shown['uuid'] == found['uuid']
    assert newest.arqs('dp1')[0]['device_profile_name'] == 'dp2'
    body = [{'name': 'dp1', 'groups': [GROUP]}]
    answer = newest.post('/device_profiles', body)
    assert (answer.status, answer.fault) == (
        409,
        'Device profile dp1 already exists.',
    )


def test_a_disabled_profile_makes_no_requests_and_is_named(newest: Client) -> None:
    before = newest.arqs()
    newest.patch('/device_profiles/dp1', replacing(enabled=False))
    wanted = {'device_profile_name': 'dp1'}
    answer = newest.at('2.0').post('/accelerator_requests', wanted)
    assert answer.status == 409
    assert 'dp1 is disabled' in answer.fault
    uuid = before[0]['uuid']
    assert newest.get(f'/accelerator_requests/{uuid}').status == 200


def test_a_server_comes_back_to_a_disabled_profile(newest: Client) -> None:
    nova = newest.as_(NOVA, '2.0')
    (arq,) = nova.arqs()
    patch = {arq['uuid']: bind()}
    assert nova.patch('/accelerator_requests', patch).status == 202
    newest.patch('/device_profiles/dp1', replacing(enabled=False))
    wanted = {'device_profile_name': 'dp1'}
    assert nova.post('/accelerator_requests', wanted).status == 409
    shelved = f'/accelerator_requests?instance={INSTANCE}'
    assert nova.delete(shelved).status == 204
    assert newest.post('/accelerator_requests', wanted).status == 409
    (again,) = nova.arqs()
    other = {again['uuid']: bind(str(uuid4()))}
    answer = nova.patch('/accelerator_requests', other)
    assert (answer.status, 'dp1 is disabled' in answer.fault) == (409, True)
    assert nova.patch('/accelerator_requests', {again['uuid']: bind()}).status == 202
    (shown,) = nova.get(shelved).json['arqs']
    assert shown['state'] == 'Bound'


# --- several at once, standard traits ---------------------------------------------


def test_several_profiles_are_created_at_once(newest: Client) -> None:
    body = [{'name': name, 'groups': [GROUP]} for name in ('dp2', 'dp3')]
    answer = newest.post('/device_profiles', body)
    assert answer.status == 201
    assert list(answer.json) == ['device_profiles']
    assert [one['name'] for one in answer.json['device_profiles']] == ['dp2', 'dp3']
    assert newest.at('2.3').post('/device_profiles', body).status == 400


@pytest.mark.parametrize('last', ['dp1', 'dp2', 'a b'])
def test_of_several_all_are_created_or_none(newest: Client, last: str) -> None:
    body = [{'name': name, 'groups': [GROUP]} for name in ('dp2', last)]
    assert newest.post('/device_profiles', body).status in (400, 409)
    assert len(newest.conductor.profiles) == 1


def test_a_profile_may_be_private_from_the_start(newest: Client) -> None:
    body = [{'name': 'dp2', 'groups': [GROUP], 'is_public': False, 'enabled': False}]
    made = newest.post('/device_profiles', body).json
    assert (made['enabled'], made['is_public']) == (False, False)
    older = [{**body[0], 'name': 'dp3', 'enabled': 'x'}]
    made = newest.at('2.3').post('/device_profiles', older).json
    shown = newest.get(f'/device_profiles/{made["uuid"]}').json['device_profile']
    assert (shown['enabled'], shown['is_public']) == (True, True)
    older[0]['name'] = 'dp4'
    assert newest.post('/device_profiles', older).status == 400


@pytest.mark.parametrize(('trait', 'status'), [(AVX, 201), ('HW_CPU_NO', 400)])
def test_standard_traits_are_legal_for_the_newest_clients(
    newest: Client, trait: str, status: int
) -> None:
    body = [{'name': 'dp2', 'groups': [{**GROUP, f'trait:{trait}': 'required'}]}]
    assert newest.at('2.3').post('/device_profiles', body).status == 400
    assert newest.post('/device_profiles', body).status == status


# --- who sees what ----------------------------------------------------------------


@pytest.fixture
def private(newest: Client) -> Client:
    newest.patch('/device_profiles/dp1', replacing(is_public=False))
    return newest


def test_a_private_profile_is_not_there_for_others(private: Client) -> None:
    for version in ('2.0', '2.4'):
        other = private.as_(STRANGER, version)
        assert other.get('/device_profiles').json['device_profiles'] == []
        wanted = {'device_profile_name': 'dp1'}
        assert other.post('/accelerator_requests', wanted).status == 404
    assert other.get('/device_profiles/dp1').status == 404
    assert len(private.get('/device_profiles').json['device_profiles']) == 1
