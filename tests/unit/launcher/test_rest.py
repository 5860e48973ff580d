# SPDX-License-Identifier: Apache-2.0
"""JSON over HTTP: every answer is one, and silence is not."""

import pytest

from devstack.launcher.configuration import free_port
from devstack.launcher.rest import Answer, Service
from tests.fakes import http_service
from tests.fakes.http_service import HttpService


@pytest.mark.parametrize('status', [200, 404, 503])
def test_a_refusal_is_an_answer_too(status: int) -> None:
    with HttpService() as service:
        service.answers['GET /x'] = http_service.Answer(status, {'told': True})
        assert Service(service.url).ask('GET', '/x') == Answer(status, {'told': True})
        assert Service(service.url).answers()


def test_nobody_at_home_is_no_answer() -> None:
    nobody = Service(f'http://127.0.0.1:{free_port()}')
    assert not nobody.answers()
    with pytest.raises(OSError, match='refused'):
        nobody.ask('GET', '/')
