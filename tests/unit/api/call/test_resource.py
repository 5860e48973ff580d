# SPDX-License-Identifier: Apache-2.0
"""Tests of the mapping from HTTP methods to Python methods."""

import pytest

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import V2_0, V2_3, V2_4, Microversion
from cyborg_lite.errors.requests import MethodNotAllowed
from tests.support.api.calls import build_api_context


class Thing(Resource):
    """A resource with GET, and with PATCH since 2.4."""

    def get(self) -> str:
        return 'shown'

    @since(V2_4, hidden=True)
    def patch(self, call: Call) -> str:
        return 'changed'


@pytest.mark.parametrize(
    ('http_method', 'version', 'name'),
    [('GET', V2_0, 'get'), ('HEAD', V2_0, 'get'), ('PATCH', V2_4, 'patch')],
)
def test_find_method_supported_returns_name(
    http_method: str, version: Microversion, name: str
) -> None:
    assert Thing.find_method(http_method, version) == name


@pytest.mark.parametrize(
    ('method', 'version', 'allowed'),
    [
        ('DELETE', V2_4, 'GET, HEAD, PATCH'),
        ('PATCH', V2_3, 'GET, HEAD'),
        ('context', V2_4, 'GET, HEAD, PATCH'),
        ('get', V2_4, 'GET, HEAD, PATCH'),
    ],
)
def test_find_method_unsupported_lists_allowed_methods(
    method: str, version: Microversion, allowed: str
) -> None:
    with pytest.raises(MethodNotAllowed) as error:
        Thing.find_method(method, version)
    assert error.value.kwargs['allowed'] == allowed


def test_identifier_is_first_path_parameter() -> None:
    resource = Thing(build_api_context(), ['a', 'b'])
    assert resource.identifier == 'a'
