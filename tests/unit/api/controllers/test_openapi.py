# SPDX-License-Identifier: Apache-2.0
"""The API document as clients get it."""

import pytest

from tests.unit.api.conversation import Client


@pytest.mark.parametrize('prefix', ['', '/accelerator'])
def test_the_api_document_needs_no_token(client: Client, prefix: str) -> None:
    stranger = client.as_({})
    stranger.prefix = prefix
    answer = stranger.get('/v2/openapi.json')
    assert answer.status == 200
    assert answer.headers['Content-Type'] == 'application/json'
    assert answer.json['openapi'] == '3.1.0'
    (server,) = answer.json['servers']
    assert server['url'] == f'http://controller:6666{prefix}'


def test_it_is_of_all_microversions_or_of_one(client: Client) -> None:
    assert '/v2/services' in client.get('/openapi.json').json['paths']
    older = client.get('/openapi.json?microversion=2.3').json
    assert older['info']['version'] == '2.3'
    assert '/v2/services' not in older['paths']


@pytest.mark.parametrize('asked', ['2.5', 'latest', '2', '%00'])
def test_there_is_none_of_a_version_that_is_not_served(
    client: Client, asked: str
) -> None:
    answer = client.get(f'/openapi.json?microversion={asked}')
    assert answer.status == 400
    assert '2.0 to 2.4' in answer.fault
