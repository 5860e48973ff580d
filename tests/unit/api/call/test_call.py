# SPDX-License-Identifier: Apache-2.0
"""Tests of parsing a request, and of the URLs in its response."""

from typing import Any

import pytest

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.links import Links
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


ENVIRON: dict[str, Any] = {
    'wsgi.url_scheme': 'http',
    'HTTP_HOST': 'controller:6666',
    'SERVER_NAME': 'localhost',
    'SERVER_PORT': '6666',
    'SCRIPT_NAME': '',
}


@pytest.mark.parametrize(
    ('public', 'script', 'href'),
    [
        (None, '', 'http://controller:6666/v2/x'),
        (None, '/accelerator', 'http://controller:6666/accelerator/v2/x'),
        ('', '', 'http://controller:6666/v2/x'),
        ('https://cloud.example', '', 'https://cloud.example/v2/x'),
        ('https://cloud.example/', '', 'https://cloud.example/v2/x'),
        (
            'https://cloud.example',
            '/accelerator',
            'https://cloud.example/accelerator/v2/x',
        ),
        ('https://cloud.example/acc/', '', 'https://cloud.example/acc/v2/x'),
        ('https://cloud.example/acc', '/accelerator', 'https://cloud.example/acc/v2/x'),
        (None, '/\xc3\xbc b', 'http://controller:6666/%C3%BC%20b/v2/x'),
        (None, '/\xff', 'http://controller:6666/%FF/v2/x'),
    ],
)
def test_links_start_with_public_endpoint(
    public: str | None, script: str, href: str
) -> None:
    links = Links.from_environ({**ENVIRON, 'SCRIPT_NAME': script}, public)
    assert links.build_url('v2/x') == href


@pytest.mark.parametrize('host', [None, ''])
def test_links_without_host_header_use_server_name(host: str | None) -> None:
    links = Links.from_environ({**ENVIRON, 'HTTP_HOST': host}, None)
    assert links.build_url('v2') == 'http://localhost:6666/v2'
