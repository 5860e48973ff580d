# SPDX-License-Identifier: Apache-2.0
"""Tests of requests and errors of the commands."""

import json
from typing import Any

import pytest
import requests
from osc_lib import exceptions

from cyborg_lite.cli.rest import AcceleratorApi, quote_path
from tests.builders.device_rows import add_device
from tests.support.api.command_line import WsgiAdapter
from tests.support.api.conversation import Client


class Proxy:
    """Answers with one response."""

    def __init__(self, status: int, body: bytes) -> None:
        self._status = status
        self._body = body

    def request(self, url: str, method: str, **options: Any) -> Any:
        response = requests.Response()
        response.status_code, response._content = self._status, self._body
        return response


def test_list_all_reads_every_page(client: Client) -> None:
    uuids = [add_device(client.conductor.database).uuid for _ in range(5)]
    api = AcceleratorApi(WsgiAdapter(client))
    records = list(api.list_all('/devices', 'devices', {'limit': 2}))
    assert [record['uuid'] for record in records] == uuids


@pytest.mark.parametrize(
    ('status', 'body', 'text'),
    [
        (409, json.dumps({'errors': [{'detail': 'a\n  b'}]}).encode(), 'a b'),
        (502, b'<html>', 'HTTP 502 from the accelerator service'),
        (500, b'{"errors": null}', 'HTTP 500 from the accelerator service'),
        (503, b'[]', 'HTTP 503 from the accelerator service'),
    ],
)
def test_error_has_one_line(status: int, body: bytes, text: str) -> None:
    with pytest.raises(exceptions.CommandError) as raised:
        AcceleratorApi(Proxy(status, body)).call('GET', '/x')
    assert str(raised.value) == f'{text} (HTTP {status})'


def test_quote_path_quotes_slashes() -> None:
    assert quote_path('a/b?c') == 'a%2Fb%3Fc'
