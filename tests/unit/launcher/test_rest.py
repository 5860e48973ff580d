# SPDX-License-Identifier: Apache-2.0
"""Tests of the JSON client."""

import pytest

from devstack.launcher.configuration import free_port
from devstack.launcher.rest import Answer, Service
from tests.doubles import http_service
from tests.doubles.http_service import HttpService


@pytest.mark.parametrize('status', [200, 404, 503])
def test_ask_error_status_returns_answer(status: int) -> None:
    with HttpService() as service:
        service.answers['GET /x'] = http_service.Answer(status, {'key': True})
        assert Service(service.url).ask('GET', '/x') == Answer(status, {'key': True})
        assert Service(service.url).answers()


def test_ask_unreachable_service_raises() -> None:
    service = Service(f'http://127.0.0.1:{free_port()}')
    assert not service.answers()
    with pytest.raises(OSError, match='refused'):
        service.ask('GET', '/')
