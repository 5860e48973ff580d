# SPDX-License-Identifier: Apache-2.0
"""Tests of creating, listing, showing and deleting device profiles."""

from typing import Any

import pytest

from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import HOST, READER, Client

CHOSEN = 'd5ca2f11-3108-4426-a11c-a959987565df'
GROUP = {'resources:FPGA': '1'}
NAMES: list[Any] = ['a.b', '\u00e9', '\u0663', True, [], {}]
UUIDS: list[Any] = ['', 'x', 5, [], True]
AMOUNTS: list[Any] = [0, -1, 257, 10**40, 1.5, True, None, [], {}, '0', '1.5', '']


def build_body(**fields: Any) -> list[dict[str, Any]]:
    return [{'name': 'dp1', 'groups': [GROUP], **fields}]


def test_create_profile_returns_no_wrapper(client: Client) -> None:
    groups = [{'resources:FPGA': 1, 'trait:CUSTOM_FPGA_1': 'required'}]
    answer = client.post(
        '/device_profiles', build_body(description=None, groups=groups)
    )
    assert answer.status == 201
    uuid = answer.json['uuid']
    assert answer.json == {
        'uuid': uuid,
        'name': 'dp1',
        'description': None,
        'groups': [{'resources:FPGA': '1', 'trait:CUSTOM_FPGA_1': 'required'}],
        'created_at': answer.json['created_at'],
        'updated_at': None,
        'links': [{'href': f'{HOST}/v2/device_profiles/{uuid}', 'rel': 'self'}],
    }


def test_create_profile_any_description_is_stored(client: Client) -> None:
    text = '\u00fcber \U0001f600 "\\ \n'
    answer = client.post('/device_profiles', build_body(description=text))
    assert answer.json['description'] == text
    assert (
        client.get('/device_profiles').json['device_profiles'][0]['description'] == text
    )


def test_create_profile_repeated_uuid_returns_409(client: Client) -> None:
    first = client.post('/device_profiles', build_body(uuid=CHOSEN.upper()))
    assert first.json['uuid'] == CHOSEN
    second = client.post('/device_profiles', build_body(name='dp2', uuid=CHOSEN))
    assert second.status == 409
    assert CHOSEN in second.fault


def test_create_profile_repeated_name_returns_409(client: Client) -> None:
    client.create_profile('dp1')
    answer = client.post('/device_profiles', build_body())
    assert answer.status == 409
    assert answer.fault == 'Device profile dp1 already exists.'


@pytest.mark.parametrize(
    'body',
    [
        [],
        {},
        [5],
        build_body() * 2,
        [{'groups': [GROUP]}],
        build_body(name=None),
        build_body(name=''),
        build_body(name='a b'),
        build_body(name='dp1\n'),
        build_body(name='x' * 256),
        *(build_body(name=name) for name in NAMES),
        *(build_body(uuid=uuid) for uuid in UUIDS),
        build_body(description=5),
        build_body(description='x' * 256),
        build_body(description='a\0b'),
        build_body(description='\ud800'),
        [{'name': 'dp1'}],
        build_body(groups=None),
        build_body(groups=[]),
        build_body(groups='x'),
        build_body(groups=GROUP),
        build_body(groups=[GROUP] * 33),
        build_body(groups=[[]]),
        build_body(groups=[{'FPGA': '1'}]),
        build_body(groups=[{'resources:VCPU': '1'}]),
        *(build_body(groups=[{'resources:FPGA': amount}]) for amount in AMOUNTS),
        build_body(groups=[{'resources:FPGA': 200}, {'resources:GPU': 57}]),
        build_body(groups=[{**GROUP, 'trait:HW_CPU_X86_AVX': 'required'}]),
        build_body(groups=[{**GROUP, 'trait:CUSTOM_A': 'maybe'}]),
        build_body(groups=[{**GROUP, 'accel:': 'x'}]),
        build_body(groups=[{**GROUP, 'accel:a b': 'x'}]),
        build_body(groups=[{**GROUP, 'accel:x': {}}]),
        build_body(groups=[{**GROUP, 'accel:x': 5}]),
        build_body(groups=[{**GROUP, 'accel:bitstream_id': 'x'}]),
        build_body(groups=[{**GROUP, 'accel:attach_target': 'moon'}]),
        build_body(groups=[{'trait:CUSTOM_A': 'required'}]),
    ],
)
def test_create_profile_invalid_stores_nothing(client: Client, body: Any) -> None:
    answer = client.post('/device_profiles', body)
    assert answer.status == 400
    assert answer.fault
    assert not client.conductor.profiles


@pytest.mark.parametrize(
    ('body', 'field'),
    [
        (build_body() * 2, 'at most 1'),
        (build_body(groups=[GROUP, {'FPGA': '1'}]), 'groups[1]: FPGA'),
        (build_body(groups=[GROUP, {'accel:x': '1'}]), 'groups[1] has no resources:'),
        (build_body(groups=[GROUP] * 257), 'groups must be a list of 1 to 32'),
        (build_body(name='a.b'), '[0].name must match'),
    ],
)
def test_create_profile_error_names_field(
    client: Client, body: Any, field: str
) -> None:
    assert field in client.post('/device_profiles', body).fault


def test_create_profile_unknown_keys_are_ignored(client: Client) -> None:
    body = build_body(created_at='x', links=5, id=7)
    assert client.post('/device_profiles', body).status == 201


def test_create_profile_normalizes_names_for_placement(client: Client) -> None:
    group = {'resources: custom-x ': '2', 'trait:custom-y': 'forbidden'}
    created = client.create_profile('dp1', group)
    assert created['groups'] == [
        {'resources:CUSTOM_X': '2', 'trait:CUSTOM_Y': 'forbidden'}
    ]


def test_create_profile_class_gpu_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.create_profile('dp1', {'resources:PGPU': '1'})
    assert 'GPU' not in caplog.text
    client.create_profile('dp2', {'resources:GPU': '1'})
    assert 'Device profile dp2 uses the resource class GPU' in caplog.text


def test_list_profiles_order_is_creation(client: Client) -> None:
    for name in ('b', 'c', 'a'):
        client.create_profile(name)
    listed = client.as_(READER).get('/device_profiles').json['device_profiles']
    assert [profile['name'] for profile in listed] == ['b', 'c', 'a']


@pytest.mark.parametrize(
    ('query', 'names'),
    [
        ('name=a', ['a']),  # as Nova sends it
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
def test_list_profiles_filters_names(
    client: Client, query: str, names: list[str]
) -> None:
    for name in ('a', 'b', 'c'):
        client.create_profile(name)
    answer = client.get(f'/device_profiles?{query}')
    assert answer.status == 200
    assert [profile['name'] for profile in answer.json['device_profiles']] == names


def test_show_profile_has_wrapper(client: Client) -> None:
    created = client.create_profile()
    for spelling in (created['uuid'], created['uuid'].upper().replace('-', '')):
        answer = client.get(f'/device_profiles/{spelling}')
        assert answer.status == 200
        assert answer.json == {'device_profile': created}


def test_show_profile_by_name_requires_2_2(client: Client) -> None:
    created = client.create_profile('dp1')
    for version in ('2.0', '2.1'):
        answer = client.at(version).get('/device_profiles/dp1')
        assert answer.status == 406
        assert '2.2' in answer.fault
    for version in ('2.2', '2.3'):
        answer = client.at(version).get('/device_profiles/dp1')
        assert answer.json == {'device_profile': created}


@pytest.mark.parametrize('identifier', [CHOSEN, 'nobody', 'a%20b', '%00', '%C3%A9'])
def test_show_profile_unknown_returns_404(client: Client, identifier: str) -> None:
    answer = client.at('2.2').get(f'/device_profiles/{identifier}')
    assert answer.status == 404
    assert 'not found' in answer.fault


def test_show_profile_name_like_uuid(client: Client) -> None:
    name = CHOSEN.replace('-', '')
    created = client.create_profile(name)
    assert client.get(f'/device_profiles/{name}').json['device_profile'] == created
    assert client.delete(f'/device_profiles/{name}').status == 204
    assert not client.conductor.profiles


def test_show_profile_uuid_precedes_name(client: Client) -> None:
    created = client.create_profile()
    client.create_profile(created['uuid'])
    path = f'/device_profiles/{created["uuid"]}'
    assert client.get(path).json['device_profile'] == created


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
def test_delete_profile_by_name_or_uuid(client: Client, path: str) -> None:
    uuid = client.create_profile('dp1')['uuid']
    client.create_profile('dp2')
    answer = client.delete(path.format(uuid=uuid, UUID=uuid.upper()))
    assert answer.status == 204
    assert answer.body == b''
    assert 'Content-Type' not in answer.headers
    assert [profile.name for profile in client.conductor.profiles.values()] == ['dp2']


@pytest.mark.parametrize(
    'path', ['/device_profiles?value={0},dp2', '/device_profiles?name=dp1,dp2',
             '/device_profiles/dp1,{1}', '/device_profiles?value=dp1,dp2,dp1']
)  # fmt: skip
def test_delete_profiles_several_at_once(client: Client, path: str) -> None:
    uuids = [client.create_profile(name)['uuid'] for name in ('dp1', 'dp2')]
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
def test_delete_profiles_empty_list_returns_400(client: Client, path: str) -> None:
    client.create_profile('dp1')
    assert client.delete(path).status == 400
    assert len(client.conductor.profiles) == 1


@pytest.mark.parametrize(
    'identifiers', ['nobody', 'dp1,nobody', CHOSEN, 'dp1,a%20b', 'dp1,%C3%A9', '%00']
)
def test_delete_profiles_one_unknown_deletes_none(
    client: Client, identifiers: str
) -> None:
    client.create_profile('dp1')
    for path in (
        f'/device_profiles?value={identifiers}',
        f'/device_profiles/{identifiers}',
    ):
        answer = client.delete(path)
        assert answer.status == 404
        assert 'not found' in answer.fault
    assert len(client.conductor.profiles) == 1


def test_list_profiles_malformed_name_skips_database(client: Client) -> None:
    """Some databases ignore a space at the end of a name."""
    client.create_profile('dp1')
    call_count = len(client.conductor.callers)
    assert client.delete('/device_profiles/dp1%20x').status == 404
    assert client.delete('/device_profiles?value=dp1.').status == 404
    assert client.at('2.2').get('/device_profiles/dp1%20').status == 404
    assert len(client.conductor.callers) == call_count


def test_delete_profile_in_use_returns_409(client: Client) -> None:
    client.create_profile('dp1')
    client.create_arqs('dp1')
    answer = client.delete('/device_profiles/dp1')
    assert answer.status == 409
    assert 'dp1' in answer.fault


def test_list_profiles_one_name_is_one_call(client: Client) -> None:
    """Nova sends ``GET ?name=`` without a version and requires at most one."""
    client.create_profile('dp1', {'resources:FPGA': 1}, {'resources:GPU': 2})
    calls = client.conductor.callers[:]
    answer = client.get('/device_profiles?name=dp1')
    (profile,) = answer.json['device_profiles']
    assert profile['groups'] == [{'resources:FPGA': '1'}, {'resources:GPU': '2'}]
    assert len(client.conductor.callers) - len(calls) == 1


def test_list_profiles_page_follows_marker(client: Client) -> None:
    uuids = {name: client.create_profile(name)['uuid'] for name in 'bca'}
    query = f'limit=1&marker={uuids["a"]}&sort_key=name'
    (profile,) = client.get(f'/device_profiles?{query}').json['device_profiles']
    assert profile['name'] == 'b'


def test_unknown_accel_key_is_refused_since_2_6(client: Client) -> None:
    groups: Any = [{'resources:FPGA': '1', 'accel:bitsream_id': 'a'}]
    body = [{'name': 'dp2', 'groups': groups}]
    answer = client.at('2.6').post('/device_profiles', body)
    assert answer.status == 400
    assert 'did you mean accel:bitstream_id?' in answer.fault
    assert client.at('2.5').post('/device_profiles', body).status == 201
    patch: Any = [{'op': 'replace', 'path': '/groups', 'value': groups}]
    assert client.at('2.6').patch('/device_profiles/dp2', patch).status == 400
    # The stored key stays valid while other fields change.
    patch[0] |= {'path': '/enabled', 'value': False}
    assert client.at('2.6').patch('/device_profiles/dp2', patch).status == 200


@pytest.mark.parametrize('key', ['selector', 'video_ram', 'cleaning', 'function_uuid'])
def test_known_accel_key_is_no_unknown_key(client: Client, key: str) -> None:
    groups = [{'resources:FPGA': '1', f'accel:{key}': 'never'}]
    body = [{'name': 'dp2', 'groups': groups}]
    answer = client.at('2.6').post('/device_profiles', body)
    assert answer.status == 201 or 'no known key' not in answer.fault


@pytest.fixture
def catalogue(client: Client) -> Client:
    """Return a client of a service with five profiles.

    One profile is disabled, two are not public.
    """
    client = client.at('2.4')
    for number in range(5):
        client.create_profile(f'dp{number}')
    client.patch('/device_profiles/dp1', build_replace_patch(enabled=False))
    client.patch('/device_profiles/dp2', build_replace_patch(is_public=False))
    client.patch(
        '/device_profiles/dp3', build_replace_patch(is_public=False, name='dp9')
    )
    return client


def names(client: Client, query: str) -> list[str]:
    profiles = client.get(f'/device_profiles?{query}').json['device_profiles']
    return [element['name'] for element in profiles]


@pytest.mark.parametrize(
    ('query', 'expected'),
    [
        ('enabled=true', ['dp0', 'dp2', 'dp9', 'dp4']),
        ('enabled=False', ['dp1']),
        ('is_public=false', ['dp2', 'dp9']),
        ('is_public=false&enabled=false', []),
        ('is_public=false&name=dp2,dp4', ['dp2']),
        ('is_public=false&name=dp3', ['dp9']),
        ('is_public=true&sort_key=name&sort_dir=desc', ['dp4', 'dp1', 'dp0']),
    ],
)
def test_list_profiles_newer_filters(
    catalogue: Client, query: str, expected: list[str]
) -> None:
    assert names(catalogue, query) == expected


@pytest.mark.parametrize(
    'query', ['enabled=', 'enabled=1', 'is_public=yes', 'groups=x']
)
def test_list_profiles_unknown_filter_is_named(catalogue: Client, query: str) -> None:
    answer = catalogue.get(f'/device_profiles?{query}')
    assert answer.status == 400
    assert query.partition('=')[0] in answer.fault


def test_list_profiles_before_2_4_accepts_only_name(catalogue: Client) -> None:
    older = catalogue.at('2.3')
    assert older.get('/device_profiles?enabled=true').status == 400
    assert 'device_profiles_links' not in older.get('/device_profiles?limit=1').json
