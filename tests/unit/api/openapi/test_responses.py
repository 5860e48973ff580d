# SPDX-License-Identifier: Apache-2.0
"""What each operation may be answered."""

import pytest

from tests.unit.api.described import document_of, operation


@pytest.mark.parametrize(
    ('method', 'path', 'codes'),
    [
        ('get', '', '200 406'),
        ('get', '/devices', '200 400 401 403 406 503'),
        ('get', '/accelerator_requests', '200 400 401 403 406 423 503'),
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
def test_all_statuses_are_there(method: str, path: str, codes: str) -> None:
    assert ' '.join(operation(method, path)['responses']) == codes


def test_a_refusal_says_what_a_client_needs_next() -> None:
    shared = document_of(None)['components']['responses']
    assert 'Retry-After' in shared['ServiceUnavailable']['headers']
    assert 'Allow' in shared['MethodNotAllowed']['headers']
    assert 'WWW-Authenticate' in shared['Unauthorized']['headers']


def test_work_that_goes_on_is_answered_with_202_besides() -> None:
    said = operation('patch', '/deployables/{uuid}/program')['responses']
    shown = [said[code]['content']['application/json'] for code in ('200', '202')]
    assert [one['schema']['$ref'].rpartition('/')[2] for one in shown] == [
        'Deployable',
        'Job',
    ]


def test_no_body_is_promised_where_there_is_none() -> None:
    said = operation('delete', '/attributes/{uuid}')['responses']['204']
    assert 'content' not in said
