# SPDX-License-Identifier: Apache-2.0
"""Tests of the path prefix."""

from typing import Any

import pytest
import webob

from cyborg_lite.api.middleware import PrefixMiddleware


def answer_place(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Respond with SCRIPT_NAME and PATH_INFO."""
    place = f'{environ["SCRIPT_NAME"]}|{environ["PATH_INFO"]}'
    return list(webob.Response(text=place)(environ, start_response))


@pytest.mark.parametrize(
    ('script', 'path', 'place'),
    [
        ('', '/v2', '|/v2'),
        ('', '/accelerator', '/accelerator|'),
        ('', '/accelerator/', '/accelerator|/'),
        ('', '/accelerator/v2/devices', '/accelerator|/v2/devices'),
        ('', '/accelerators', '|/accelerators'),
        ('/accelerator', '/v2', '/accelerator|/v2'),
        ('/accelerator', '', '/accelerator|'),
        ('/accelerator', '/accelerator/v2', '/accelerator|/accelerator/v2'),
        ('/cloud', '/accelerator/v2', '/cloud/accelerator|/v2'),
    ],
)
def test_prefix_moves_to_script_name(script: str, path: str, place: str) -> None:
    request = webob.Request.blank('/')
    request.environ.update(SCRIPT_NAME=script, PATH_INFO=path)
    assert request.get_response(PrefixMiddleware(answer_place)).text == place
