# SPDX-License-Identifier: Apache-2.0
"""The documents by which clients find us, and what lies where."""

import pytest

from tests.unit.api.conversation import Client

RANGE = {'status': 'CURRENT', 'max_version': '2.4', 'min_version': '2.0'}
PUBLIC = 'http://controller:6666'


@pytest.fixture
def nobody() -> Client:
    """Without a token, and without a prefix."""
    client = Client(headers={})
    client.prefix = ''
    return client


@pytest.mark.parametrize('path', ['', '/', '/accelerator', '/accelerator/'])
def test_the_root_document_is_public(nobody: Client, path: str) -> None:
    answer = nobody.get(path)
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
def test_the_version_document_is_public_and_bare(nobody: Client, path: str) -> None:
    answer = nobody.get(path)
    assert answer.status == 200
    link = {'href': f'{PUBLIC}{path.rstrip("/")}/', 'rel': 'self'}
    assert answer.json == {'id': 'v2.0', **RANGE, 'links': [link]}
    assert answer.headers['OpenStack-API-Version'] == 'accelerator 2.0'


def test_the_documents_do_not_mind_a_version_or_an_argument(nobody: Client) -> None:
    """A client that wants too much must be able to learn what there is."""
    nobody.version = '9.9'
    assert nobody.get('/').status == 200
    nobody.version = None
    assert nobody.get('/?a=b').status == 200
    assert nobody.get('/v2?a=b').status == 200


@pytest.mark.parametrize(
    'path',
    [
        '/v1',
        '/v3',
        '/v2.json',
        '/v2/device_profiles.json',
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
def test_nothing_else_is_there(client: Client, path: str) -> None:
    client.prefix = ''
    answer = client.get(path)
    assert answer.status == 404
    assert 'not found' in answer.fault


@pytest.mark.parametrize(
    'collection',
    ['device_profiles', 'accelerator_requests', 'devices', 'deployables', 'attributes'],
)
@pytest.mark.parametrize('prefix', ['', '/v2', '/accelerator', '/accelerator/v2'])
def test_a_collection_is_found_in_all_its_places(
    client: Client, collection: str, prefix: str
) -> None:
    client.prefix = prefix
    for path in (collection, f'{collection}/'):
        assert client.get(f'/{path}').status == 200


def test_links_have_the_prefix_of_the_request(client: Client) -> None:
    client.profile('dp1')
    for prefix, base in (
        ('/v2', '/v2'),
        ('', '/v2'),
        ('/accelerator/v2', '/accelerator/v2'),
        ('/accelerator', '/accelerator/v2'),
    ):
        client.prefix = prefix
        shown = client.get('/device_profiles').json['device_profiles'][0]
        href = shown['links'][0]['href']
        assert href == f'{PUBLIC}{base}/device_profiles/{shown["uuid"]}'
        client.prefix = ''
        assert client.get(href.removeprefix(PUBLIC)).status == 200


@pytest.mark.parametrize('path', ['/', '/v2', '/v2/devices'])
def test_head_is_get_without_the_body(client: Client, path: str) -> None:
    client.prefix = ''
    full, short = client.get(path), client.send('HEAD', path)
    assert (short.status, short.body) == (200, b'')
    assert short.headers['Content-Length'] == str(len(full.body))


@pytest.mark.parametrize('method', ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
@pytest.mark.parametrize('path', ['/', '/v2', '/v2/'])
def test_the_documents_are_only_read(client: Client, method: str, path: str) -> None:
    client.prefix = ''
    answer = client.send(method, path)
    assert (answer.status, answer.headers['Allow']) == (405, 'GET, HEAD')


def test_an_argument_cannot_change_the_method(client: Client) -> None:
    """Pecan's REST controllers have such a back door."""
    client.profile('dp1')
    assert client.get('/device_profiles/dp1?_method=delete').status == 400
    assert client.conductor.profiles
