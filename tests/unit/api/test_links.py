# SPDX-License-Identifier: Apache-2.0
"""Links lead to where the service is, or to where the operator says it is."""

from typing import Any

import pytest

from cyborg_lite.api.links import Links

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
def test_a_link_begins_where_clients_see_us(
    public: str | None, script: str, href: str
) -> None:
    links = Links.of({**ENVIRON, 'SCRIPT_NAME': script}, public)
    assert links.to('v2/x') == href


@pytest.mark.parametrize('host', [None, ''])
def test_a_request_without_a_host_gets_the_servers(host: str | None) -> None:
    links = Links.of({**ENVIRON, 'HTTP_HOST': host}, None)
    assert links.to('v2') == 'http://localhost:6666/v2'
