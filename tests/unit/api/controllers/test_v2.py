# SPDX-License-Identifier: Apache-2.0
"""Tests of the version document and of the collections below it."""

import pytest

from tests.support.api.conversation import Client


@pytest.mark.parametrize('path', ['', '/'])
def test_version_document_needs_no_token(client: Client, path: str) -> None:
    answer = client.as_({}).get(path)
    assert answer.status == 200
    assert set(answer.json) == {'id', 'links', 'max_version', 'min_version', 'status'}
    assert (answer.json['id'], answer.json['min_version']) == ('v2.0', '2.0')


@pytest.mark.parametrize(
    'collection',
    ['device_profiles', 'accelerator_requests', 'devices', 'deployables', 'attributes'],
)
def test_collections_require_token(client: Client, collection: str) -> None:
    assert client.get(f'/{collection}').status == 200
    assert client.as_({}).get(f'/{collection}').status == 401


@pytest.mark.parametrize('path', ['/nowhere', '/Devices', '/devices.json', '//devices'])
def test_unknown_collection_returns_404(client: Client, path: str) -> None:
    assert client.get(path).status == 404


def test_version_document_post_returns_405(client: Client) -> None:
    answer = client.post('', {})
    assert (answer.status, answer.headers['Allow']) == (405, 'GET, HEAD')
