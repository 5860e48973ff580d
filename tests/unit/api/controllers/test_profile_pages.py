# SPDX-License-Identifier: Apache-2.0
"""Device profiles picked by what they are, and read page by page."""

import pytest

from tests.unit.api.controllers.test_profile_changes import replacing
from tests.unit.api.conversation import HOST, Client


@pytest.fixture
def newest(client: Client) -> Client:
    """An administrator and five profiles; one is disabled, two are not public."""
    client = client.at('2.4')
    for number in range(5):
        client.profile(f'dp{number}')
    client.patch('/device_profiles/dp1', replacing(enabled=False))
    client.patch('/device_profiles/dp2', replacing(is_public=False))
    client.patch('/device_profiles/dp3', replacing(is_public=False, name='dp9'))
    return client


def names(client: Client, query: str) -> list[str]:
    found = client.get(f'/device_profiles?{query}').json['device_profiles']
    return [one['name'] for one in found]


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
def test_profiles_are_picked_by_the_server(
    newest: Client, query: str, expected: list[str]
) -> None:
    assert names(newest, query) == expected


@pytest.mark.parametrize(
    'query', ['enabled=', 'enabled=1', 'is_public=yes', 'groups=x']
)
def test_what_is_no_filter_is_refused_by_its_name(newest: Client, query: str) -> None:
    answer = newest.get(f'/device_profiles?{query}')
    assert answer.status == 400
    assert query.partition('=')[0] in answer.fault


def test_older_clients_know_the_name_alone(newest: Client) -> None:
    older = newest.at('2.3')
    assert older.get('/device_profiles?enabled=true').status == 400
    assert 'device_profiles_links' not in older.get('/device_profiles?limit=1').json


def test_links_lead_through_all_pages_with_the_filters(newest: Client) -> None:
    met, path = [], '/device_profiles?enabled=true&limit=2&sort_key=name&sort_dir=desc'
    while path:
        page = newest.get(path).json
        met += [one['name'] for one in page['device_profiles']]
        links = page.get('device_profiles_links', [])
        assert [one['rel'] for one in links] in ([], ['next'])
        path = links[0]['href'].removeprefix(f'{HOST}/v2') if links else ''
    assert met == ['dp9', 'dp4', 'dp2', 'dp0']
