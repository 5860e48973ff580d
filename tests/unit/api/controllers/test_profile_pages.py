# SPDX-License-Identifier: Apache-2.0
"""Tests of filters and pages of device profiles."""

import pytest

from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import HOST, Client


@pytest.fixture
def newest(client: Client) -> Client:
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
    newest: Client, query: str, expected: list[str]
) -> None:
    assert names(newest, query) == expected


@pytest.mark.parametrize(
    'query', ['enabled=', 'enabled=1', 'is_public=yes', 'groups=x']
)
def test_list_profiles_unknown_filter_is_named(newest: Client, query: str) -> None:
    answer = newest.get(f'/device_profiles?{query}')
    assert answer.status == 400
    assert query.partition('=')[0] in answer.fault


def test_list_profiles_before_2_4_accepts_only_name(newest: Client) -> None:
    older = newest.at('2.3')
    assert older.get('/device_profiles?enabled=true').status == 400
    assert 'device_profiles_links' not in older.get('/device_profiles?limit=1').json


def test_list_profiles_links_keep_filters(newest: Client) -> None:
    names_read, path = (
        [],
        '/device_profiles?enabled=true&limit=2&sort_key=name&sort_dir=desc',
    )
    while path:
        page = newest.get(path).json
        names_read += [element['name'] for element in page['device_profiles']]
        links = page.get('device_profiles_links', [])
        assert [element['rel'] for element in links] in ([], ['next'])
        path = links[0]['href'].removeprefix(f'{HOST}/v2') if links else ''
    assert names_read == ['dp9', 'dp4', 'dp2', 'dp0']
