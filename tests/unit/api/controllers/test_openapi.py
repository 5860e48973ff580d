# SPDX-License-Identifier: Apache-2.0
"""Tests of the API document over HTTP."""

import pytest

from tests.support.api.conversation import Client


@pytest.mark.parametrize('prefix', ['', '/accelerator'])
def test_document_needs_no_token(client: Client, prefix: str) -> None:
    anonymous = client.as_({})
    anonymous.prefix = prefix
    answer = anonymous.get('/v2/openapi.json')
    assert answer.status == 200
    assert answer.headers['Content-Type'] == 'application/json'
    assert answer.json['openapi'] == '3.1.0'
    (server,) = answer.json['servers']
    assert server['url'] == f'http://controller:6666{prefix}'


def test_document_of_one_or_all_microversions(client: Client) -> None:
    assert '/v2/services' in client.get('/openapi.json').json['paths']
    older = client.get('/openapi.json?microversion=2.3').json
    assert older['info']['version'] == '2.3'
    assert '/v2/services' not in older['paths']


@pytest.mark.parametrize('version', ['2.99', 'latest', '2', '%00'])
def test_document_unsupported_microversion_returns_400(
    client: Client, version: str
) -> None:
    answer = client.get(f'/openapi.json?microversion={version}')
    assert answer.status == 400
    assert '2.0 to 2.7' in answer.fault
