# SPDX-License-Identifier: Apache-2.0
"""Fuzzing of the API: no input may cause an error 5xx.

Requests are made from the samples and the words of the contract, so that they get past
the first checks, and from anything else.
"""

import json
import operator
import re
from typing import Any, Final

import pytest
import webob
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.builders.api_samples import FOLDER
from tests.builders.device_rows import add_deployable, add_device
from tests.support.api import api_document
from tests.support.api.conversation import ADMIN, SERVICE_TOKEN, Answer, Client

UUID: Final = 'd5ca2f11-3108-4426-a11c-a959987565df'
WORDS: Final = st.sampled_from(
    [
        UUID,
        'dp1',
        'name',
        'groups',
        'description',
        'uuid',
        'resources:FPGA',
        'trait:CUSTOM_A',
        'required',
        'accel:bitstream_id',
        'accel:selector',
        'accel:video_ram',
        'accel:same',
        'alternatives',
        'device.memory_mib >= 4096',
        '2GB',
        'device_profile_name',
        'op',
        'path',
        'value',
        'add',
        'remove',
        'replace',
        '/hostname',
        '/device_rp_uuid',
        '/instance_uuid',
        '/project_id',
        '/program',
        '/groups',
        '/status',
        '/configuration',
        'image_uuid',
        'attribute',
        'deployable_id',
        'key',
        'state',
        'hostname',
        'health',
        'driver_name',
        '1',
    ]
)
TEXTS: Final = WORDS | st.text(st.characters(), max_size=20)
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=5)
    ),
    max_leaves=12,
)


# Any, here and below: JSON.
def vary(sample: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of JSON like a sample, with other, missing or further parts."""
    if isinstance(sample, dict):
        parts = {name: vary(value) for name, value in sample.items()}
        some = st.fixed_dictionaries({}, optional=parts)
        further = st.dictionaries(TEXTS, JSON, max_size=2)
        return some | some | st.builds(operator.or_, some, further) | JSON
    if isinstance(sample, list):
        values = st.one_of(*map(vary, sample))
        return st.lists(values, min_size=1, max_size=3) | JSON
    return st.just(sample) | st.just(sample) | TEXTS | JSON


def read_body(operation: str) -> Any:
    """Return the body of the sample of an operation; None: it has none."""
    text = (FOLDER / f'{operation}.json').read_text()
    return json.loads(text)['request'].get('body')


PLACE: Final = st.sampled_from(
    ['', '/name', '/groups', '/groups/0', '/groups/-', '/status', '/reason', '/program']
) | st.text('/~01-a', max_size=6)
JSON_PATCH: Final = st.lists(
    st.fixed_dictionaries(
        {
            'op': st.sampled_from(['add', 'remove', 'replace', 'move', 'copy', 'test']),
            'path': PLACE,
            'from': PLACE,
            'value': st.just([{'resources:FPGA': '1'}]) | JSON,
        },
    ),
    max_size=5,
)
# Objects that JSON Patches change.
OBJECTS: Final = (
    '/device_profiles/dp1',
    f'/devices/{UUID}',
    '/hosts/compute-1',
    f'/deployables/{UUID}/program',
)
OPERATIONS_THERE: Final = {
    f'{method.upper()} {path}': operation
    for path, item in api_document.load_document(None)['paths'].items()
    for method, operation in item.items()
}
BODIES: Final = {
    name: vary(read_body(operation['operationId'])) | JSON
    for name, operation in OPERATIONS_THERE.items()
    if 'requestBody' in operation
}
WITHOUT_BODY: Final = [name for name in OPERATIONS_THERE if name not in BODIES]
ARGUMENTS: Final = st.sampled_from(
    sorted(
        {
            parameter['name']
            for operation in OPERATIONS_THERE.values()
            for parameter in operation['parameters']
            if parameter.get('in') == 'query'
        }
        | {'filters[0].field', 'filters[0].value'}
    )
)
LATIN: Final = st.text(st.characters(max_codepoint=255), max_size=30)
VALUES: Final = (
    st.sampled_from(['1', 'resolved', UUID, 'desc', 'name', '', f'{UUID},x', '%00'])
    | st.integers().map(str)
    | LATIN.filter(lambda text: '&' not in text)
)
QUERIES: Final = LATIN | st.lists(
    st.builds('{}={}'.format, ARGUMENTS, VALUES), max_size=4
).map('&'.join)
HEADERS: Final = st.dictionaries(
    st.sampled_from(
        [
            'HTTP_ACCEPT',
            'HTTP_OPENSTACK_API_VERSION',
            'HTTP_X_OPENSTACK_REQUEST_ID',
            'HTTP_X_AUTH_TOKEN',
            'HTTP_X_PROJECT_ID',
            'HTTP_X_ROLES',
            'HTTP_X_SERVICE_ROLES',
            'HTTP_OPENSTACK_SYSTEM_SCOPE',
            'HTTP_HOST',
            'HTTP_ORIGIN',
            'HTTP_RANGE',
            'HTTP_IF_NONE_MATCH',
            'HTTP_X_HTTP_METHOD_OVERRIDE',
            'CONTENT_TYPE',
            'CONTENT_LENGTH',
        ]
    ),
    LATIN,
    max_size=3,
)


@pytest.fixture(scope='module', params=['2.4', '2.7'])
def shared_client(request: pytest.FixtureRequest) -> Client:
    """Return a client of a microversion; the examples share its data."""
    client = Client(headers={**ADMIN, **SERVICE_TOKEN}, version=request.param)
    add_device(client.conductor.database, uuid=UUID)
    add_deployable(client.conductor.database, uuid=UUID)
    client.create_profile('dp1')
    return client


def check(answer: Answer) -> None:
    """Check that the status is below 500 and the body is readable."""
    assert answer.status < 500, answer.body
    if answer.body:
        text = answer.body.decode('utf-8')
        document = json.loads(text)
        if answer.status >= 400:
            assert 'error' in document or document['errors']


MANY: Final = settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],
)


@pytest.mark.parametrize('operation', BODIES)
@MANY
@given(data=st.data())
def test_fuzz_bodies_never_return_500(
    shared_client: Client, operation: str, data: st.DataObject
) -> None:
    body = data.draw(BODIES[operation])
    method, path = request_line(operation)
    check(shared_client.send(method, path, raw=json.dumps(body).encode()))


@pytest.mark.parametrize('path', OBJECTS)
@MANY
@given(body=JSON_PATCH)
def test_fuzz_json_patches_never_return_500(
    shared_client: Client, path: str, body: list[Any]
) -> None:
    media = {'Content-Type': 'application/json-patch+json'}
    check(shared_client.at('2.7').send('PATCH', path, body, headers=media))


@pytest.mark.parametrize('operation', BODIES)
@given(raw=st.binary(max_size=60))
def test_fuzz_bytes_never_return_500(
    shared_client: Client, operation: str, raw: bytes
) -> None:
    method, path = request_line(operation)
    check(shared_client.send(method, path, raw=raw))


def request_line(operation: str) -> tuple[str, str]:
    """Return method and path of an operation on existing objects."""
    method, path = operation.split()
    path = path.replace('{device_profile}', 'dp1').removeprefix('/v2')
    return method, re.sub('{[a-z_]+}', UUID, path)


def environ(client: Client, operation: str) -> dict[str, Any]:
    """Return the environment of a valid request."""
    method, path = request_line(operation)
    request = webob.Request.blank(f'/v2{path}', method=method)
    request.headers.update(client.headers)
    result: dict[str, Any] = request.environ
    return result


def answer(client: Client, environment: dict[str, Any]) -> Answer:
    request = webob.Request(environment)
    result = request.get_response(client.application)
    api_document.check_response(request, result)
    return Answer(result)


@pytest.mark.parametrize('operation', WITHOUT_BODY)
@MANY
@given(query=QUERIES)
def test_fuzz_queries_never_return_500(
    shared_client: Client, operation: str, query: str
) -> None:
    environment = environ(shared_client, operation)
    environment['QUERY_STRING'] = query
    check(answer(shared_client, environment))


@MANY
@given(
    method=st.sampled_from(['GET', 'POST', 'PATCH', 'DELETE', 'HEAD']) | LATIN,
    path=st.lists(
        st.sampled_from(
            ['v2', 'accelerator', 'devices', 'device_profiles', 'enable', UUID, '']
        )
        | LATIN,
        max_size=5,
    ).map('/'.join),
    script=st.sampled_from(['', '/accelerator']) | LATIN,
)
def test_fuzz_paths_never_return_500(
    shared_client: Client, method: str, path: str, script: str
) -> None:
    environment = environ(shared_client, 'GET /v2')
    environment.update(REQUEST_METHOD=method, PATH_INFO=f'/{path}', SCRIPT_NAME=script)
    check(answer(shared_client, environment))


@pytest.mark.parametrize('operation', BODIES)
@given(headers=HEADERS)
def test_fuzz_headers_never_return_500(
    shared_client: Client, operation: str, headers: dict[str, str]
) -> None:
    environment = environ(shared_client, operation)
    environment.update(headers)
    check(answer(shared_client, environment))
