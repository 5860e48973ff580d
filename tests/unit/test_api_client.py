# SPDX-License-Identifier: Apache-2.0
"""Tests of the client of the API that the commands and the dashboard share."""

import pytest

from cyborg_lite.api_client import AcceleratorApi, ApiError
from tests.support.api.command_line import WsgiAdapter
from tests.support.api.conversation import MEMBER, Client


def test_refused_call_raises_error_with_status() -> None:
    api = AcceleratorApi(WsgiAdapter(Client().as_(MEMBER)))
    with pytest.raises(ApiError, match='cyborg:device:get_all') as raised:
        api.call('GET', '/devices')
    assert raised.value.status == 403


def test_service_token_is_sent_with_every_call() -> None:
    api = AcceleratorApi(WsgiAdapter(Client())).with_service_token('token')
    query = {'instance': '00000000-0000-4000-8000-000000000001'}
    assert api.call('GET', '/accelerator_requests', query=query) == {'arqs': []}


def test_generation_is_sent_as_precondition() -> None:
    client = Client()
    path = f'/device_profiles/{client.create_profile()["uuid"]}'
    api = AcceleratorApi(WsgiAdapter(client))
    body = [{'op': 'replace', 'path': '/description', 'value': 'x'}]
    api.call('PATCH', path, body=body, generation=0)
    with pytest.raises(ApiError, match='is not 0') as raised:
        api.call('PATCH', path, body=body, generation=0)
    assert raised.value.status == 409
