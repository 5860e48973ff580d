# SPDX-License-Identifier: Apache-2.0
"""Tests of the attributes of deployables."""

from typing import Any

import pytest

from tests.builders.device_rows import add_deployable
from tests.support.api.conversation import HOST, MANAGER, Client

BODY = {'deployable_id': 1, 'key': 'k', 'value': 'v'}
NO_IDS: list[Any] = [None, True, 1.5, '', 'x', '1.0', [], {}, 2**31, '9' * 11, 10**99]
NO_TEXTS: list[Any] = ['', 5, None, []]


@pytest.fixture
def client() -> Client:
    """Return a client of a service with the deployables 1 and 2."""
    client = Client()
    add_deployable(client.conductor.database)
    add_deployable(client.conductor.database)
    return client


@pytest.mark.parametrize(
    'body',
    [
        BODY,
        {**BODY, 'deployable_id': '1'},
        {'attribute': BODY},
        {'attribute': {**BODY, 'deployable_id': '1', 'id': 5}},
        {**BODY, 'anything': 5},
    ],
)
def test_create_attribute_accepts_both_forms(client: Client, body: Any) -> None:
    answer = client.post('/attributes', body)
    assert answer.status == 201
    uuid = answer.json['uuid']
    assert answer.json == {
        'uuid': uuid,
        'deployable_id': 1,
        'key': 'k',
        'value': 'v',
        'links': [{'href': f'{HOST}/v2/attributes/{uuid}', 'rel': 'self'}],
        'created_at': answer.json['created_at'],
        'updated_at': None,
    }
    reader = client.as_(MANAGER)
    assert reader.get(f'/attributes/{uuid.upper()}').json == answer.json
    assert reader.get('/attributes').json == {'attributes': [answer.json]}


@pytest.mark.parametrize('number', [3, '3', 2**31 - 1, 0, -1])
def test_create_attribute_unknown_deployable_returns_404(
    client: Client, number: Any
) -> None:
    answer = client.post('/attributes', {**BODY, 'deployable_id': number})
    assert (answer.status, 'not found' in answer.fault) == (404, True)


@pytest.mark.parametrize(
    'body',
    [
        [],
        {},
        {'attribute': None},
        {'attribute': []},
        {'attribute': {}},
        *({key: BODY[key] for key in BODY if key != missing} for missing in BODY),
        *({**BODY, 'deployable_id': number} for number in NO_IDS),
        {**BODY, 'deployable_id': '\u0661'},
        *({**BODY, key: value} for key in ('key', 'value') for value in NO_TEXTS),
        {**BODY, 'key': 'x' * 256},
        {**BODY, 'value': 'x' * 1025},
        {**BODY, 'key': 'a\0b'},
        {**BODY, 'value': '\ud800'},
    ],
)
def test_create_attribute_invalid_body_returns_400(client: Client, body: Any) -> None:
    answer = client.post('/attributes', body)
    assert answer.status == 400
    assert answer.fault
    assert not client.conductor.calls


def test_create_attribute_repeated_key_returns_409(client: Client) -> None:
    client.post('/attributes', BODY)
    answer = client.post('/attributes', {**BODY, 'value': 'w'})
    assert (answer.status, 'already exists' in answer.fault) == (409, True)


@pytest.mark.parametrize(
    ('query', 'count'),
    [
        ('', 3),
        ('deployable_id=1', 2),
        ('deployable_id=2', 1),
        ('deployable_id=3', 0),
        ('deployable_id=-3', 0),
        ('key=a', 2),
        ('deployable_id=1&key=a', 1),
        ('key=nothing', 0),
        ('key=%00', 0),
        # By contract, both mean that there is no filter.
        ('deployable_id=0', 3),
        ('key=', 3),
        ('limit=2', 2),
    ],
)
def test_list_attributes_filters(client: Client, query: str, count: int) -> None:
    for number, key in ((1, 'a'), (1, 'b'), (2, 'a')):
        client.post('/attributes', {'deployable_id': number, 'key': key, 'value': 'v'})
    answer = client.get(f'/attributes?{query}')
    assert (answer.status, len(answer.json['attributes'])) == (200, count)


@pytest.mark.parametrize(
    'query',
    [
        'deployable_id=x',
        'deployable_id=',
        'deployable_id=1.0',
        'deployable_id=2147483648',
        'deployable_id=-2147483649',
        f'deployable_id={"9" * 5000}',
        'deployable_id=%D9%A1',
        'value=v',
        'filters.field=key&filters.value=a',
    ],
)
def test_list_attributes_invalid_query_returns_400(client: Client, query: str) -> None:
    assert client.get(f'/attributes?{query}').status == 400


def test_delete_attribute_twice_returns_404(client: Client) -> None:
    uuid = client.post('/attributes', BODY).json['uuid']
    answer = client.delete(f'/attributes/{uuid.upper()}')
    assert (answer.status, answer.body) == (204, b'')
    for identifier in (uuid, 'x', '%00'):
        assert client.delete(f'/attributes/{identifier}').status == 404
