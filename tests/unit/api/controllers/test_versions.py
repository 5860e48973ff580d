# SPDX-License-Identifier: Apache-2.0
"""Tests of the version documents, the API document and the paths of the API."""

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
    ('path', 'segment'),
    [
        ('/v1', 'v1'),
        ('/v3', 'v3'),
        ('/v2.json', 'v2.json'),
        ('/v2/device_profiles.json', 'device_profiles.json'),
        ('/v2/Devices', 'Devices'),
        ('/v2/foo', 'foo'),
        ('/foo/bar', 'foo'),
        ('/v2/devices/u/foo', 'foo'),
        ('/v2//devices', ''),
        ('/v2/devices//', ''),
        ('//', ''),
        ('//v2', ''),
        ('/v2/v2', 'v2'),
        ('/v2/_route', '_route'),
        ('/v2/backing', 'backing'),
        ('/v2/get', 'get'),
        ('/accelerators', 'accelerators'),
        ('/accelerator/accelerator/v2', 'accelerator'),
        ('/index', 'index'),
        ('/favicon.ico', 'favicon.ico'),
    ],
)
def test_unknown_path_returns_404(client: Client, path: str, segment: str) -> None:
    client.prefix = ''
    answer = client.get(path)
    assert answer.status == 404
    assert f'{segment} not found' in answer.fault


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
