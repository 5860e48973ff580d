# SPDX-License-Identifier: Apache-2.0
"""Tests of the URLs in responses."""

from typing import Any

import pytest

from cyborg_lite.api.call.links import Links

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
