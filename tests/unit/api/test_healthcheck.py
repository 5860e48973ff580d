# SPDX-License-Identifier: Apache-2.0
"""Health checks of the API."""

from typing import Any

import pytest

from cyborg_lite.api.healthcheck import Readiness
from cyborg_lite.exceptions import ServiceUnavailable
from tests.doubles.conductor import FakeConductor
from tests.support.api.conversation import Client

READY = '/healthcheck/ready'
NOBODY = {'X-Roles': ''}


class UnreachableConductor(FakeConductor):
    """Conductor that answers only while ``answers`` is True."""

    answers = False
    questions = 0

    def list_services(self, *arguments: Any) -> Any:
        self.questions += 1
        if not self.answers:
            raise ServiceUnavailable(what='cyborg-lite-conductor')
        return super().list_services(*arguments)


@pytest.mark.parametrize('prefix', ['', '/accelerator'])
def test_ready_conductor_answers_returns_200(prefix: str) -> None:
    answer = Client(headers=NOBODY, prefix=prefix).get(READY)
    assert answer.status == 200


def test_ready_conductor_silent_returns_503_with_reason() -> None:
    client = Client(UnreachableConductor(), headers=NOBODY, prefix='')
    answer = client.get(READY)
    assert answer.status == 503
    assert b'cyborg-lite-conductor does not answer' in answer.body
    # The process itself is alive.
    assert client.get('/healthcheck').status == 200


def test_readiness_is_asked_once_a_second() -> None:
    conductor, seconds = UnreachableConductor(), [0.0]
    readiness = Readiness(conductor, lambda: seconds[0])
    assert readiness.find_failure()
    conductor.answers = True
    seconds[0] = 0.5
    assert readiness.find_failure()
    seconds[0] = 1.0
    assert readiness.find_failure() is None
    assert conductor.questions == 2
