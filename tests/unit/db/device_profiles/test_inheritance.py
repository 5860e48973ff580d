# SPDX-License-Identifier: Apache-2.0
"""Device profiles that extend other ones, through the REST API and the database."""

from dataclasses import replace
from typing import Any, Final

import pytest
from sqlalchemy import select

from cyborg_lite.db.device_profiles import profile_formats
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import DeviceProfileParent, Notification
from cyborg_lite.model.device_profiles import Inheritance, ProfileChange
from cyborg_lite.rpc.context import RequestContext
from tests.builders.alternatives import build_profile
from tests.doubles.stored_profiles import StoredProfiles
from tests.support.api.conversation import MEMBER, Client
from tests.support.api.inheritance import (
    BASE,
    NEWEST,
    create,
    create_chain,
    patch,
    show,
)

OLDER: Final = '2.24'
ADMIN: Final = RequestContext(is_admin=True)
NIC: Final = {'resources:CUSTOM_NIC': '1'}


@pytest.fixture
def client(database: Database) -> Client:
    return Client(StoredProfiles(database)).at(NEWEST)


def test_child_has_groups_of_parent_and_its_own(client: Client) -> None:
    parent = create(client, 'base', groups=[BASE, NIC]).json
    own_groups = [{'resources:PGPU': '2', 'trait:CUSTOM_A': None}, {}, NIC]
    created = create(client, 'child', extends='base', own_groups=own_groups)
    assert created.status == 201, created.fault
    expected = [{'resources:PGPU': '2'}, NIC, NIC]
    for profile in (created.json, show(client, 'child')):
        assert profile['groups'] == expected
        assert profile['extends'] == {'uuid': parent['uuid'], 'name': 'base'}
        assert profile['own_groups'] == own_groups
    assert (parent['extends'], parent['own_groups']) == (None, None)
    older = show(client.at(OLDER), 'child')
    assert older['groups'] == expected
    assert older.keys().isdisjoint({'extends', 'own_groups'})
    (listed,) = client.get('/device_profiles?name=child').json['device_profiles']
    assert listed['own_groups'] == own_groups


def test_several_profiles_of_one_request_extend_each_other(client: Client) -> None:
    uuid = create(client, 'base', groups=[BASE]).json['uuid']
    body = [
        {'name': 'a', 'extends': uuid.upper(), 'own_groups': [{}, NIC]},
        {'name': 'b', 'extends': 'a'},
    ]
    answer = client.post('/device_profiles', body)
    assert answer.status == 201, answer.fault
    groups = [profile['groups'] for profile in answer.json['device_profiles']]
    assert groups == [[BASE, NIC]] * 2


@pytest.mark.parametrize(
    ('fields', 'text'),
    [
        ({'extends': 'missing'}, 'no device profile missing'),
        ({'extends': 'a b'}, 'must be the name or the uuid'),
        ({'extends': 5}, 'must be the name or the uuid'),
        ({'extends': 'p', 'groups': [NIC]}, 'own_groups instead of groups'),
        ({'groups': [NIC], 'own_groups': []}, 'requires extends'),
        ({'extends': 'p', 'own_groups': {}}, 'list of at most'),
        ({'extends': 'p', 'own_groups': [[]]}, 'own_groups[0] must be an object'),
        ({'extends': 'p', 'own_groups': [{'a': None}]}, 'must start with'),
        ({'extends': 'p', 'own_groups': [{'resources:PGPU': None}]}, 'no resources'),
        ({'extends': 'p', 'own_groups': [{}, {}, NIC]}, 'groups[1] has no resources'),
        (
            {'extends': 'p', 'own_groups': [{}, {'trait:CUSTOM_A': 'required'}]},
            'groups[1] has no resources',
        ),
        ({'extends': 'p', 'own_groups': [{}, *[NIC] * 4]}, 'list of 1 to 4'),
        ({'extends': 'p', 'own_groups': [{'resources:PGPU': 17}]}, 'from 1 to 16'),
        ({'extends': 'p', 'own_groups': [{'resources:PGPU': 16}, NIC]}, 'request 17'),
        ({'extends': 'p', 'own_groups': [{'accel:selector': 'x ='}]}, 'selector'),
        ({'extends': 'p', 'own_groups': [{'alternatives': 'x'}]}, 'alternatives must'),
    ],
)
def test_invalid_child_is_refused(
    client: Client, fields: dict[str, Any], text: str
) -> None:
    create(client, 'p', groups=[BASE])
    answer = create(client, 'child', **fields)
    assert answer.status == 400
    assert text in answer.fault
    names = [p['name'] for p in client.get('/device_profiles').json['device_profiles']]
    assert names == ['p']


def test_older_client_ignores_extends(client: Client) -> None:
    older = client.at(OLDER)
    assert create(older, 'p', groups=[BASE], extends='q', own_groups=5).status == 201
    assert create(older, 'child', extends='p').status == 400
    assert patch(older, 'p', extends='p').status == 400


def test_change_of_parent_changes_descendants(client: Client) -> None:
    create_chain(client, 'a', 'b', 'c')
    group = {**BASE, 'trait:CUSTOM_B': 'required'}
    for version in (OLDER, NEWEST):
        before = show(client, 'c')['generation']
        group = {**group, f'trait:CUSTOM_{version[-1]}': 'required'}
        assert patch(client.at(version), 'a', groups=[group, NIC]).status == 200
        expected = [{**group, 'resources:PGPU': '2'}, NIC]
        assert [show(client, name)['groups'] for name in 'bc'] == [expected] * 2
        assert show(client, 'c')['generation'] == before + 1
    assert show(client, 'c')['updated_at'] is not None


def test_change_without_effect_keeps_generation_of_child(client: Client) -> None:
    create_chain(client, 'a', 'b')
    assert patch(client, 'a', groups=[{**BASE, 'resources:PGPU': '3'}]).status == 200
    assert patch(client, 'a', name='new').status == 200
    child = show(client, 'b')
    assert (child['generation'], child['extends']['name']) == (0, 'new')


def test_change_that_makes_descendant_invalid_is_refused(client: Client) -> None:
    create(client, 'a', groups=[BASE])
    create(client, 'b', extends='a', own_groups=[{}, {'resources:PGPU': '8'}])
    create(client, 'c', extends='a', own_groups=[{'resources:PGPU': None, **NIC}])
    answer = patch(client, 'a', groups=[{**BASE, 'resources:PGPU': '9'}])
    assert (answer.status, 'b: groups request 17' in answer.fault) == (409, True)
    assert 'c:' not in answer.fault
    assert show(client, 'a')['groups'] == [BASE]
    assert show(client, 'b')['generation'] == 0


@pytest.mark.parametrize('version', ['2.4', OLDER, NEWEST])
def test_groups_of_child_cannot_be_replaced(client: Client, version: str) -> None:
    create_chain(client, 'a', 'b')
    answer = patch(client.at(version), 'b', groups=[NIC])
    assert (answer.status, 'extends another one' in answer.fault) == (409, True)
    assert 'Change own_groups' in answer.fault
    assert patch(client.at(version), 'b', description='x').status == 200


def test_own_groups_of_child_are_replaced(client: Client) -> None:
    create_chain(client, 'a', 'b')
    answer = patch(client, 'b', own_groups=[{}, NIC])
    assert answer.json['device_profile']['groups'] == [BASE, NIC]
    assert show(client, 'b')['own_groups'] == [{}, NIC]
    assert patch(client, 'a', own_groups=[]).status == 400


def test_extends_null_keeps_groups(client: Client) -> None:
    create_chain(client, 'a', 'b')
    groups = show(client, 'b')['groups']
    separate = patch(client, 'b', extends=None).json['device_profile']
    assert (separate['groups'], separate['extends']) == (groups, None)
    assert patch(client, 'a', groups=[NIC]).status == 200
    assert show(client, 'b')['groups'] == groups
    refused = patch(client, 'b', extends='a')
    assert (refused.status, 'own_groups is required' in refused.fault) == (400, True)
    assert patch(client, 'b', extends='a', own_groups=[]).status == 200
    assert show(client, 'b')['groups'] == [NIC]


def test_cycle_is_refused(client: Client) -> None:
    create_chain(client, 'a', 'b', 'c')
    for parent in 'abc':
        answer = patch(client, 'a', extends=parent, own_groups=[])
        assert (answer.status, 'extends names' in answer.fault) == (400, True)
    assert show(client, 'a')['extends'] is None


def test_chain_has_at_most_four_profiles(client: Client) -> None:
    create_chain(client, 'a', 'b', 'c', 'd')
    answer = create(client, 'e', extends='d')
    assert (answer.status, 'at most 4' in answer.fault) == (400, True)
    create(client, 'x', groups=[BASE])
    assert patch(client, 'a', extends='x', own_groups=[]).status == 400
    assert patch(client, 'b', extends='x').status == 200
    body: list[dict[str, Any]]
    body = [{'name': f'y{n}', 'extends': f'y{n - 1}'} for n in range(1, 5)]
    body.insert(0, {'name': 'y0', 'groups': [BASE]})
    assert client.post('/device_profiles', body).status == 400
    assert client.post('/device_profiles', body[:4]).status == 201


def test_parent_with_children_cannot_be_deleted(client: Client) -> None:
    create_chain(client, 'a', 'b', 'c')
    answer = client.delete('/device_profiles/a')
    assert (answer.status, 'is extended by b' in answer.fault) == (409, True)
    assert client.delete('/device_profiles?value=a,b').status == 409
    assert client.delete('/device_profiles?value=a,b,c').status == 204
    assert client.get('/device_profiles').json['device_profiles'] == []


def test_delete_child_keeps_parent(client: Client) -> None:
    create_chain(client, 'a', 'b')
    assert client.delete('/device_profiles/b').status == 204
    database = client.conductor.database  # type: ignore[attr-defined]  # of the double
    assert database.read(lambda s: s.scalars(select(DeviceProfileParent)).all()) == []
    assert client.delete('/device_profiles/a').status == 204


def test_private_parent_is_shown_to_permitted_callers(client: Client) -> None:
    create(client, 'a', groups=[BASE], is_public=False)
    create(client, 'b', extends='a')
    hidden = show(client.as_(MEMBER), 'b')
    assert (hidden['groups'], hidden['extends']) == ([BASE], None)
    assert hidden['own_groups'] is None
    assert show(client, 'b')['extends']['name'] == 'a'


def test_alternatives_are_inherited_and_replaced(client: Client) -> None:
    first: dict[str, Any] = dict(BASE)
    first['alternatives'] = [{'resources:VGPU': '1'}]
    create(client, 'a', groups=[first])
    own_groups: list[dict[str, Any]] = [{'trait:CUSTOM_C': 'required'}]
    created = create(client, 'b', extends='a', own_groups=own_groups).json
    assert created['groups'] == [{**first, 'trait:CUSTOM_C': 'required'}]
    own_groups[0]['alternatives'] = None
    changed = patch(client, 'b', own_groups=own_groups).json['device_profile']
    assert changed['groups'] == [{**BASE, 'trait:CUSTOM_C': 'required'}]
    assert show(client, 'b')['own_groups'] == own_groups


def test_selector_of_child_is_compiled_anew(client: Client) -> None:
    create(client, 'a', groups=[{**BASE, 'accel:memory': '2GB'}])
    create(client, 'b', extends='a', own_groups=[{'accel:memory': '4 GB'}])
    create(client, 'c', extends='a', own_groups=[{'accel:memory': None}])
    a, b, c = (show(client, name)['groups'][0] for name in 'abc')
    traits = [{key for key in group if '_SEL_' in key} for group in (a, b, c)]
    assert [len(names) for names in traits] == [1, 1, 0]
    assert traits[0] != traits[1]
    assert (b['accel:memory'], c) == ('4GB', BASE)
    faster = {**BASE, 'accel:memory': '2GB', 'accel:link_speed': '16GT/s'}
    assert patch(client, 'a', groups=[faster]).status == 200
    changed = show(client, 'b')['groups'][0]
    assert changed['accel:link_speed'] == '16GT/s'
    assert not traits[1] & changed.keys()


def test_impossible_groups_of_descendants_are_refused(database: Database) -> None:
    conductor = StoredProfiles(database)
    client = Client(conductor).at(NEWEST)
    create_chain(client, 'a', 'b')
    uuid = show(client, 'a')['uuid']
    change = ProfileChange(('groups',), groups=(NIC,))
    conductor.service.change(ADMIN, uuid, change, possible=True)
    assert conductor.checks.names == ['a', 'b']
    child = replace(
        build_profile((NIC,)), groups=(), inheritance=Inheritance('a'), name='c'
    )
    conductor.service.create(ADMIN, [child], possible=True)
    assert conductor.checks.names == ['a', 'b', 'c']


def test_change_of_parent_is_notified_for_child(database: Database) -> None:
    url = database._url.render_as_string(hide_password=False)
    notifying = Database(url, notifies=True)
    try:
        client = Client(StoredProfiles(notifying)).at(NEWEST)
        create_chain(client, 'a', 'b')
        patch(client, 'a', groups=[{**BASE, 'trait:CUSTOM_B': 'required'}])
        rows = notifying.read(
            lambda s: [
                (row.event_type.rpartition('.')[2], row.payload)
                for row in s.scalars(select(Notification).order_by(Notification.id))
            ]
        )
    finally:
        notifying.close()
    assert [action for action, _ in rows] == [
        'created',
        'created',
        'updated',
        'updated',
    ]


def test_renamed_keys_of_own_groups_stay_renamed(client: Client) -> None:
    former, present = 'resources:CUSTOM_ACCELERATOR_QAT', 'resources:CUSTOM_QAT'
    create(client, 'a', groups=[BASE])
    uuid = create(client, 'b', extends='a', own_groups=[{}, {former: '1'}]).json['uuid']
    database = client.conductor.database  # type: ignore[attr-defined]  # of the double
    before = show(client, 'b')['groups']
    after = [BASE, {present: '1'}]
    assert database.write(profile_formats.replace_groups, uuid, before, after)
    assert show(client, 'b')['own_groups'] == [{}, {present: '1'}]
    assert patch(client, 'a', groups=[{**BASE, 'resources:PGPU': '2'}]).status == 200
    assert show(client, 'b')['groups'][1] == {present: '1'}
