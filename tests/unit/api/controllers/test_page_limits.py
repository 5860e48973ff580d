# SPDX-License-Identifier: Apache-2.0
"""Tests of the largest page of collections, since microversion 2.5."""

from urllib.parse import urlsplit

import pytest

from cyborg_lite.api.app import assemble
from tests.builders.device_rows import add_device
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import Client, build_configuration


@pytest.fixture
def small() -> Client:
    """Return a client of a service with pages of two elements, and five devices."""
    conductor = LocalConductor()
    application = assemble(build_configuration(max_limit=2), conductor.client)
    for _ in range(5):
        add_device(conductor.database)
    return Client(conductor, application)


@pytest.mark.parametrize(
    ('query', 'number'),
    [('', 2), ('limit=1', 1), ('limit=2', 2), ('limit=3', 2), ('limit=' + '9' * 40, 2)],
)
def test_page_has_at_most_maximum(small: Client, query: str, number: int) -> None:
    answer = small.at('2.5').get(f'/devices?{query}')
    assert len(answer.json['devices']) == number
    assert answer.json['devices_links'][0]['rel'] == 'next'


def test_next_links_lead_through_all_elements(small: Client) -> None:
    uuids, path = [], '/devices'
    while path:
        answer = small.at('2.5').get(path).json
        uuids += [device['uuid'] for device in answer['devices']]
        links = answer.get('devices_links')
        path = f'/devices?{urlsplit(links[0]["href"]).query}' if links else ''
    assert uuids == list(small.conductor.devices)


@pytest.mark.parametrize('limit', ['0', '-1', 'x', '%D9%A3', ''])
def test_invalid_limit_is_refused(small: Client, limit: str) -> None:
    answer = small.at('2.5').get(f'/devices?limit={limit}')
    assert (answer.status, 'positive integer' in answer.fault) == (400, True)


def test_older_microversion_lists_all_elements(small: Client) -> None:
    for query in ('', 'limit=4'):
        answer = small.at('2.4').get(f'/devices?{query}')
        assert len(answer.json['devices']) == (4 if query else 5)
