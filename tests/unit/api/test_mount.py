# SPDX-License-Identifier: Apache-2.0
"""The prefix is taken off once, by whoever stands first."""

from typing import Any

import pytest
import webob

from cyborg_lite.api.mount import Mount


def where(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """Answers with the place in which the application believes to be."""
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
def test_the_prefix_moves_from_path_to_mount_point(
    script: str, path: str, place: str
) -> None:
    request = webob.Request.blank('/')
    request.environ.update(SCRIPT_NAME=script, PATH_INFO=path)
    assert request.get_response(Mount(where)).text == place
