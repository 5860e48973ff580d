# SPDX-License-Identifier: Apache-2.0
"""Tests of the version documents and of the paths of the API."""

import pytest

from tests.support.api.conversation import Client

RANGE = {'status': 'CURRENT', 'max_version': '2.7', 'min_version': '2.0'}
PUBLIC = 'http://controller:6666'


@pytest.fixture
def anonymous() -> Client:
    """Return a client without a token and without a prefix."""
    client = Client(headers={})
    client.prefix = ''
    return client


@pytest.mark.parametrize('path', ['', '/', '/accelerator', '/accelerator/'])
def test_root_document_is_public(anonymous: Client, path: str) -> None:
    answer = anonymous.get(path)
    assert answer.status == 200
    prefix = path.rstrip('/')
    link = {'href': f'{PUBLIC}{prefix}/v2', 'rel': 'self'}
    version = {'id': 'v2', **RANGE, 'links': [link]}
    document = answer.json
    assert document.pop('description')
    assert document == {
        'name': 'OpenStack Cyborg API',
        'versions': [version],
        'default_version': version,
    }


@pytest.mark.parametrize('path', ['/v2', '/v2/', '/accelerator/v2', '/accelerator/v2/'])
def test_version_document_is_public_without_wrapper(
    anonymous: Client, path: str
) -> None:
    answer = anonymous.get(path)
    assert answer.status == 200
    link = {'href': f'{PUBLIC}{path.rstrip("/")}/', 'rel': 'self'}
    assert answer.json == {'id': 'v2.0', **RANGE, 'links': [link]}
    assert answer.headers['OpenStack-API-Version'] == 'accelerator 2.0'


def test_version_documents_ignore_version_and_arguments(anonymous: Client) -> None:
    """A client with an unsupported version must be able to read the range."""
    anonymous.version = '9.9'
    assert anonymous.get('/').status == 200
    anonymous.version = None
    assert anonymous.get('/?a=b').status == 200
    assert anonymous.get('/v2?a=b').status == 200


@pytest.mark.parametrize(
    'path',
    [
        '/v1',
        '/v3',
        '/v2.json',
        '/v2/device_profiles.json',
        '/v2/Devices',
        '/v2/foo',
        '/v2//devices',
        '/v2/devices//',
        '//',
        '//v2',
        '/foo',
        '/v2/v2',
        '/v2/_route',
        '/v2/backing',
        '/v2/get',
        '/accelerators',
        '/accelerator/accelerator/v2',
        '/index',
        '/favicon.ico',
    ],
)
def test_unknown_path_returns_404(client: Client, path: str) -> None:
    client.prefix = ''
    answer = client.get(path)
    assert answer.status == 404
    assert 'not found' in answer.fault


@pytest.mark.parametrize(
    'collection',
    ['device_profiles', 'accelerator_requests', 'devices', 'deployables', 'attributes'],
)
@pytest.mark.parametrize('prefix', ['', '/v2', '/accelerator', '/accelerator/v2'])
def test_collections_are_served_at_all_prefixes(
    client: Client, collection: str, prefix: str
) -> None:
    client.prefix = prefix
    for path in (collection, f'{collection}/'):
        assert client.get(f'/{path}').status == 200


def test_links_have_prefix_of_request(client: Client) -> None:
    client.create_profile('dp1')
    for prefix, base in (
        ('/v2', '/v2'),
        ('', '/v2'),
        ('/accelerator/v2', '/accelerator/v2'),
        ('/accelerator', '/accelerator/v2'),
    ):
        client.prefix = prefix
        profile = client.get('/device_profiles').json['device_profiles'][0]
        href = profile['links'][0]['href']
        assert href == f'{PUBLIC}{base}/device_profiles/{profile["uuid"]}'
        client.prefix = ''
        assert client.get(href.removeprefix(PUBLIC)).status == 200


@pytest.mark.parametrize('path', ['/', '/v2', '/v2/devices'])
def test_head_returns_no_body(client: Client, path: str) -> None:
    client.prefix = ''
    full, short = client.get(path), client.send('HEAD', path)
    assert (short.status, short.body) == (200, b'')
    assert short.headers['Content-Length'] == str(len(full.body))


@pytest.mark.parametrize('method', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
@pytest.mark.parametrize('path', ['/', '/v2', '/v2/'])
def test_version_documents_other_method_returns_405(
    client: Client, method: str, path: str
) -> None:
    client.prefix = ''
    answer = client.send(method, path)
    assert (answer.status, answer.headers['Allow']) == (405, 'GET, HEAD')


def test_method_argument_is_refused(client: Client) -> None:
    """The REST controllers of Pecan support such an argument."""
    client.create_profile('dp1')
    assert client.get('/device_profiles/dp1?_method=delete').status == 400
    assert client.conductor.profiles
