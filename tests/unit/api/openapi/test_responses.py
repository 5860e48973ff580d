# SPDX-License-Identifier: Apache-2.0
"""Tests of the documented responses."""

import pytest

from tests.support.api.api_document import find_operation, load_document


@pytest.mark.parametrize(
    ('method', 'path', 'codes'),
    [
        ('get', '', '200 406'),
        ('get', '/devices', '200 400 401 403 406 503'),
        ('get', '/accelerator_requests', '200 400 401 403 406 409 423 503'),
        (
            'post',
            '/device_profiles',
            '201 400 401 403 406 409 413 415 503',
        ),
        (
            'patch',
            '/device_profiles/{device_profile}',
            '200 400 401 403 404 405 406 409 413 415 503',
        ),
        ('delete', '/attributes/{uuid}', '204 400 401 403 404 406 503'),
    ],
)
def test_responses_list_all_statuses(method: str, path: str, codes: str) -> None:
    assert ' '.join(find_operation(method, path)['responses']) == codes


def test_error_responses_have_headers() -> None:
    shared = load_document(None)['components']['responses']
    assert 'Retry-After' in shared['ServiceUnavailable']['headers']
    assert 'Allow' in shared['MethodNotAllowed']['headers']
    assert 'WWW-Authenticate' in shared['Unauthorized']['headers']


def test_accepted_view_is_documented_as_202() -> None:
    responses = find_operation('patch', '/deployables/{uuid}/program')['responses']
    success, accepted = (
        responses[code]['content']['application/json']['schema']
        for code in ('200', '202')
    )
    assert success['$ref'].rpartition('/')[2] == 'Deployable'
    names = [schema['$ref'].rpartition('/')[2] for schema in accepted['oneOf']]
    assert names == ['Job', 'Operation']


def test_empty_response_has_no_content() -> None:
    responses = find_operation('delete', '/attributes/{uuid}')['responses']['204']
    assert 'content' not in responses
