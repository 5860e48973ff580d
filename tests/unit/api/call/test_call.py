# SPDX-License-Identifier: Apache-2.0
"""Tests of parsing a request."""

import pytest

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import MINIMUM
from cyborg_lite.api.middleware import MICROVERSION
from tests.support.api.calls import build_api_context, build_call, build_request
from tests.support.api.conversation import ADMIN


def test_microversion_default_is_minimum() -> None:
    bare = build_request('/v2', None, ADMIN)
    del bare.environ[MICROVERSION]
    assert Call(bare, build_api_context()).microversion == MINIMUM


@pytest.mark.parametrize(
    ('path', 'quoted'),
    [
        ('/v2/devices/', 'v2/devices'),
        ('/v2/device%20profiles', 'v2/device%20profiles'),
        ('/v2/%C3%BC', 'v2/%C3%BC'),
    ],
)
def test_path_is_quoted_without_prefix(path: str, quoted: str) -> None:
    assert build_call(path).path == quoted
