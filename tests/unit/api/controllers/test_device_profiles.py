# SPDX-License-Identifier: Apache-2.0
"""Device profiles, as clients make, read and delete them."""

from typing import Any

import pytest

from tests.unit.api.conversation import HOST, READER, Client

CHOSEN = 'd5ca2f11-3108-4426-a11c-a959987565df'
GROUP = {'resources:FPGA': '1'}
AMOUNTS: list[Any] = [0, -1, 257, 10**40, 1.5, True, None, [], {}, '0', '1.5', '']


def wanted(**fields: Any) -> list[dict[str, Any]]:
    return [{'name': 'dp1', 'groups': [GROUP], **fields}]


# --- create -----------------------------------------------------------------------


def test_a_created_profile_comes_back_bare(client: Client) -> None:
    groups = [{'resources:FPGA': 1, 'trait:CUSTOM_FPGA_1': 'required'}]
    answer = client.post('/device_profiles', wanted(description=None, groups=groups))
    assert answer.status == 201
    uuid = answer.json['uuid']
    assert answer.json == {
        'uuid': uuid,
        'name': 'dp1',
        'description': None,
        'groups': [{'resources:FPGA': '1', 'trait:CUSTOM_FPGA_1': 'required'}],
        'created_at': '2026-11-21T05:53:43.501846+00:00',
        'updated_at': None,
        'links': [{'href': f'{HOST}/v2/device_profiles/{uuid}', 'rel': 'self'}],
    }


def test_any_description_comes_back_unchanged(client: Client) -> None:
    text = '\u00fcber \U0001f600 "\\ \n'
    answer = client.post('/device_profiles', wanted(description=text))
    assert answer.json['description'] == text
    assert (
        client.get('/device_profiles').json['device_profiles'][0]['description'] == text
    )


def test_the_client_may_choose_the_uuid_once(client: Client) -> None:
    first = client.post('/device_profiles', wanted(uuid=CHOSEN.upper()))
    assert first.json['uuid'] == CHOSEN
    second = client.post('/device_profiles', wanted(name='dp2', uuid=CHOSEN))
    assert second.status == 409
    assert CHOSEN in second.fault


def test_a_name_is_given_once(client: Client) -> None:
    client.profile('dp1')
    answer = client.post('/device_profiles', wanted())
    assert answer.status == 409
    assert answer.fault == 'Device profile dp1 already exists.'


@pytest.mark.parametrize(
    'body',
    [
        [],
        {},
        {'name': 'dp1'},
        [5],
        [None],
        [[]],
        'dp1',
        5,
        wanted() * 2,
        [{'groups': [GROUP]}],
        wanted(name=None),
        wanted(name=''),
        wanted(name=5),
        wanted(name='a b'),
        wanted(name='dp1\n'),
        wanted(name='x' * 256),
        wanted(uuid='x'),
        wanted(uuid=5),
        wanted(description=5),
        wanted(description='x' * 256),
        wanted(description='a\0b'),
        wanted(description='\ud800'),
        [{'name': 'dp1'}],
        wanted(groups=None),
        wanted(groups=[]),
        wanted(groups='x'),
        wanted(groups=GROUP),
        wanted(groups=[GROUP] * 33),
        wanted(groups=[[]]),
        wanted(groups=[{'FPGA': '1'}]),
        wanted(groups=[{'resources:VCPU': '1'}]),
        *(wanted(groups=[{'resources:FPGA': amount}]) for amount in AMOUNTS),
        wanted(groups=[{'resources:FPGA': 200}, {'resources:GPU': 57}]),
        wanted(groups=[{**GROUP, 'trait:HW_CPU_X86_AVX': 'required'}]),
        wanted(groups=[{**GROUP, 'trait:CUSTOM_A': 'maybe'}]),
        wanted(groups=[{**GROUP, 'accel:': 'x'}]),
        wanted(groups=[{**GROUP, 'accel:a b': 'x'}]),
        wanted(groups=[{**GROUP, 'accel:x': {}}]),
        wanted(groups=[{**GROUP, 'accel:x': 5}]),
        wanted(groups=[{**GROUP, 'accel:bitstream_id': 'x'}]),
        wanted(groups=[{**GROUP, 'accel:attach_target': 'moon'}]),
        wanted(groups=[{'trait:CUSTOM_A': 'required'}]),
    ],
)
def test_a_wrong_profile_is_refused_and_nothing_is_kept(
    client: Client, body: Any
) -> None:
    answer = client.post('/device_profiles', body)
    assert answer.status == 400
    assert answer.fault
    assert not client.conductor.profiles


@pytest.mark.parametrize(
    ('body', 'field'),
    [
        ([], 'at least 1'),
        (wanted() * 2, 'at most 1'),
        ([{'groups': [GROUP]}], 'name'),
        (wanted(name=5), '[0].name'),
        (wanted(groups=[GROUP, {'FPGA': '1'}]), 'groups[1]: FPGA'),
        (wanted(groups=[{'resources:FPGA': {}}]), 'resources:FPGA'),
    ],
)
def test_a_refusal_names_the_field(client: Client, body: Any, field: str) -> None:
    assert field in client.post('/device_profiles', body).fault


def test_unknown_keys_are_ignored(client: Client) -> None:
    body = wanted(created_at='x', links=5, id=7)
    assert client.post('/device_profiles', body).status == 201


def test_names_are_stored_as_placement_has_them(client: Client) -> None:
    group = {'resources: custom-x ': '2', 'trait:custom-y': 'forbidden'}
    created = client.profile('dp1', group)
    assert created['groups'] == [
        {'resources:CUSTOM_X': '2', 'trait:CUSTOM_Y': 'forbidden'}
    ]


def test_a_class_that_placement_lacks_is_warned_of(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.profile('dp1', {'resources:PGPU': '1'})
    assert 'GPU' not in caplog.text
    client.profile('dp2', {'resources:GPU': '1'})
    assert 'Device profile dp2 asks for the resource class GPU' in caplog.text


# --- read -------------------------------------------------------------------------


def test_an_empty_collection_is_a_list(client: Client) -> None:
    answer = client.get('/device_profiles')
    assert answer.status == 200
    assert answer.json == {'device_profiles': []}


def test_profiles_are_listed_in_order_of_creation(client: Client) -> None:
    for name in ('b', 'c', 'a'):
        client.profile(name)
    listed = client.as_(READER).get('/device_profiles').json['device_profiles']
    assert [one['name'] for one in listed] == ['b', 'c', 'a']


@pytest.mark.parametrize(
    ('query', 'names'),
    [
        ('name=a', ['a']),  # Nova's
        ('name=a,c', ['a', 'c']),
        ('name=c,nobody,a', ['a', 'c']),
        ('name=a,%20c', ['a', 'c']),
        ('name=nobody', []),
        ('name=', []),
        ('name=,', []),
        ('name=A', []),
        ('name=a%20', ['a']),
        ('name=%00', []),
        ('name=!@', []),
    ],
)
def test_names_are_picked(client: Client, query: str, names: list[str]) -> None:
    for name in ('a', 'b', 'c'):
        client.profile(name)
    answer = client.get(f'/device_profiles?{query}')
    assert answer.status == 200
    assert [one['name'] for one in answer.json['device_profiles']] == names


def test_one_profile_comes_in_a_wrapper(client: Client) -> None:
    created = client.profile()
    for spelling in (created['uuid'], created['uuid'].upper().replace('-', '')):
        answer = client.get(f'/device_profiles/{spelling}')
        assert answer.status == 200
        assert answer.json == {'device_profile': created}


def test_a_name_in_the_path_needs_2_2(client: Client) -> None:
    created = client.profile('dp1')
    for version in ('2.0', '2.1'):
        answer = client.at(version).get('/device_profiles/dp1')
        assert answer.status == 406
        assert '2.2' in answer.fault
    for version in ('2.2', '2.3'):
        answer = client.at(version).get('/device_profiles/dp1')
        assert answer.json == {'device_profile': created}


@pytest.mark.parametrize('identifier', [CHOSEN, 'nobody', 'a%20b', '%00', '%C3%A9'])
def test_an_unknown_profile_is_not_found(client: Client, identifier: str) -> None:
    answer = client.at('2.2').get(f'/device_profiles/{identifier}')
    assert answer.status == 404
    assert 'not found' in answer.fault


def test_a_name_that_looks_like_a_uuid_is_a_name_too(client: Client) -> None:
    name = CHOSEN.replace('-', '')
    created = client.profile(name)
    assert client.get(f'/device_profiles/{name}').json['device_profile'] == created
    assert client.delete(f'/device_profiles/{name}').status == 204
    assert not client.conductor.profiles


# --- delete -----------------------------------------------------------------------


@pytest.mark.parametrize(
    'path',
    [
        '/device_profiles/{uuid}',
        '/device_profiles/{UUID}',
        '/device_profiles/dp1',
        '/device_profiles?value=dp1',
        '/device_profiles?value={uuid}',
        '/device_profiles?name=dp1',
        '/device_profiles/?value=dp1',
    ],
)
def test_a_profile_is_deleted_by_any_form(client: Client, path: str) -> None:
    uuid = client.profile('dp1')['uuid']
    client.profile('dp2')
    answer = client.delete(path.format(uuid=uuid, UUID=uuid.upper()))
    assert answer.status == 204
    assert answer.body == b''
    assert 'Content-Type' not in answer.headers
    assert [one.name for one in client.conductor.profiles.values()] == ['dp2']


@pytest.mark.parametrize(
    'path', ['/device_profiles?value={0},dp2', '/device_profiles?name=dp1,dp2',
             '/device_profiles/dp1,{1}', '/device_profiles?value=dp1,dp2,dp1']
)  # fmt: skip
def test_several_profiles_are_deleted_at_once(client: Client, path: str) -> None:
    uuids = [client.profile(name)['uuid'] for name in ('dp1', 'dp2')]
    assert client.delete(path.format(*uuids)).status == 204
    assert not client.conductor.profiles


@pytest.mark.parametrize(
    'path',
    [
        '/device_profiles',
        '/device_profiles/',
        '/device_profiles?value=',
        '/device_profiles?value=,',
        '/device_profiles?name=',
        '/device_profiles/,',
        '/device_profiles?value=dp1&name=dp1',
        '/device_profiles?value=dp1&value=dp1',
        '/device_profiles?uuid=dp1',
    ],
)
def test_no_identifier_never_means_all(client: Client, path: str) -> None:
    client.profile('dp1')
    assert client.delete(path).status == 400
    assert len(client.conductor.profiles) == 1


@pytest.mark.parametrize(
    'identifiers', ['nobody', 'dp1,nobody', CHOSEN, 'dp1,a%20b', 'dp1,%C3%A9', '%00']
)
def test_one_unknown_profile_saves_all(client: Client, identifiers: str) -> None:
    client.profile('dp1')
    for path in (
        f'/device_profiles?value={identifiers}',
        f'/device_profiles/{identifiers}',
    ):
        answer = client.delete(path)
        assert answer.status == 404
        assert 'not found' in answer.fault
    assert len(client.conductor.profiles) == 1


def test_what_is_no_name_does_not_reach_a_database(client: Client) -> None:
    """Some of them think that two names are equal but for a space at the end."""
    client.profile('dp1')
    asked = len(client.conductor.callers)
    assert client.delete('/device_profiles/dp1%20x').status == 404
    assert client.delete('/device_profiles?value=dp1.').status == 404
    assert client.at('2.2').get('/device_profiles/dp1%20').status == 404
    assert len(client.conductor.callers) == asked


def test_a_profile_in_use_stays(client: Client) -> None:
    client.profile('dp1')
    client.arqs('dp1')
    answer = client.delete('/device_profiles/dp1')
    assert answer.status == 409
    assert 'dp1' in answer.fault


# --- what there is not ------------------------------------------------------------


@pytest.mark.parametrize('method', ['PUT', 'PATCH', 'OPTIONS', 'TRACE', 'BREW'])
@pytest.mark.parametrize('path', ['/device_profiles', f'/device_profiles/{CHOSEN}'])
def test_there_is_no_update(client: Client, method: str, path: str) -> None:
    answer = client.send(method, path, [{}])
    assert answer.status == 405
    assert 'GET' in answer.headers['Allow']
    assert method not in answer.headers['Allow']


def test_a_profile_is_created_in_the_collection_alone(client: Client) -> None:
    answer = client.post('/device_profiles/anything', wanted())
    assert answer.status == 405
    assert answer.headers['Allow'] == 'GET, HEAD, DELETE'
    assert not client.conductor.profiles


def test_nothing_lies_below_a_profile(client: Client) -> None:
    assert client.get(f'/device_profiles/{CHOSEN}/groups').status == 404


def test_nova_needs_one_call_and_one_element(client: Client) -> None:
    """``GET ?name=`` at no version: exactly one, or an empty list."""
    client.profile('dp1', {'resources:FPGA': 1}, {'resources:GPU': 2})
    seen = client.conductor.callers[:]
    answer = client.get('/device_profiles?name=dp1')
    (profile,) = answer.json['device_profiles']
    assert profile['groups'] == [{'resources:FPGA': '1'}, {'resources:GPU': '2'}]
    assert len(client.conductor.callers) - len(seen) == 1


def test_paging_reaches_the_conductor(client: Client) -> None:
    names = ['a', 'b', 'c', 'd', 'e']
    for name in names:
        client.profile(name)
    met: list[str] = []
    marker = ''
    while True:
        answer = client.get(f'/device_profiles?limit=2{marker}')
        page = answer.json['device_profiles']
        if not page:
            break
        assert len(page) <= 2
        met += [one['name'] for one in page]
        marker = f'&marker={page[-1]["uuid"]}'
    assert met == names
    last = client.get('/device_profiles?sort_key=name&sort_dir=desc&limit=1')
    assert last.json['device_profiles'][0]['name'] == 'e'
