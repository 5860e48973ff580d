# SPDX-License-Identifier: Apache-2.0
"""Codes of the errors that the API answers with, since microversion 2.5."""

from tests.support.api.conversation import HOST, Answer, Client


def check_code(client: Client, answer: Answer, status: int) -> str:
    """Check that the error has a code, and that its link explains it; return it."""
    assert answer.status == status
    (error,) = answer.json['errors']
    (link,) = error['links']
    url, _, pointer = link['href'].partition('#')
    assert (link['rel'], url) == ('help', f'{HOST}/v2/openapi.json')
    _, member, code = pointer.split('/')
    explanation = client.get('/openapi.json').json[member][code]
    assert (error['code'], explanation['status']) == (code, status)
    assert explanation['cause']
    assert explanation['remedy']
    return str(code)
