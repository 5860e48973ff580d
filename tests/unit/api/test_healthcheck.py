# SPDX-License-Identifier: Apache-2.0
"""Health checks of the API."""

import pytest

from cyborg_lite.api.app import assemble
from cyborg_lite.api.healthcheck import Readiness
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.rpc.client import build_conductor, serve_locally
from cyborg_lite.rpc.dispatcher import Dispatcher, serves
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.methods import CONDUCTOR
from tests.support.api.conversation import Client, build_configuration

READY = '/healthcheck/ready'
NOBODY = {'X-Roles': ''}


class ServiceRegistry:
    """Service that answers only while ``answers`` is True."""

    answers = False
    questions = 0

    @serves(Conductor.check_database)
    def check_database(self) -> None:
        self.questions += 1
        if not self.answers:
            raise ServiceUnavailable(what='cyborg-lite-conductor')


def connect(registry: ServiceRegistry) -> Conductor:
    return build_conductor(serve_locally(Dispatcher(CONDUCTOR, [registry])))


@pytest.mark.parametrize('prefix', ['', '/accelerator'])
def test_ready_conductor_answers_returns_200(prefix: str) -> None:
    answer = Client(headers=NOBODY, prefix=prefix).get(READY)
    assert answer.status == 200


def test_ready_conductor_silent_returns_503_with_reason() -> None:
    application = assemble(build_configuration(), connect(ServiceRegistry()))
    client = Client(application=application, headers=NOBODY, prefix='')
    answer = client.get(READY)
    assert answer.status == 503
    assert b'cyborg-lite-conductor does not answer' in answer.body
    # The process itself is alive.
    assert client.get('/healthcheck').status == 200


def test_readiness_is_asked_once_a_second() -> None:
    registry, seconds = ServiceRegistry(), [0.0]
    readiness = Readiness(connect(registry), clock=lambda: seconds[0])
    assert readiness.find_failure()
    registry.answers = True
    seconds[0] = 0.5
    assert readiness.find_failure()
    seconds[0] = 1.0
    assert readiness.find_failure() is None
    assert registry.questions == 2
