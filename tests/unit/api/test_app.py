# SPDX-License-Identifier: Apache-2.0
"""Tests of the application: its limits, its prefix and the order of its middleware."""

from typing import Any

import pytest
import webob

from cyborg_lite.api.middleware import PrefixMiddleware
from tests.support.api.conversation import Client


def test_path_below_healthcheck_requires_token() -> None:
    assert Client(headers={}, prefix='').get('/healthcheck/x').status == 401


@pytest.mark.parametrize('name', ['dp.json', 'dp.html', 'dp.'])
def test_name_with_dot_is_no_file_type(client: Client, name: str) -> None:
    answer = client.at('2.2').get(f'/device_profiles/{name}')
    assert answer.status == 404
    assert name in answer.fault


def test_profile_limits_come_from_configuration() -> None:
    client = Client().configure(max_profile_groups=1, max_profile_accelerators=2)
    group = {'resources:FPGA': '1'}
    for groups in ([group, group], [{'resources:FPGA': '3'}]):
        body = [{'name': 'dp1', 'groups': groups}]
        assert client.post('/device_profiles', body).status == 400
    assert client.create_profile('dp1', {'resources:FPGA': '2'})


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
