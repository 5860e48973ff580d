# SPDX-License-Identifier: Apache-2.0
"""Lists of the ARQs of an instance that wait for its bind."""

import threading
from typing import Any

import pytest

from cyborg_lite.api.app import assemble
from cyborg_lite.db.core import tables
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Message
from tests.support.api.conductor import LocalConductor, complete_binds
from tests.support.api.conversation import (
    ADMIN,
    MEMBER,
    NOVA,
    Answer,
    Client,
    Headers,
    build_configuration,
)
from tests.support.api.patches import INSTANCE, build_bind

PATH = f'/accelerator_requests?instance={INSTANCE}'
COMPUTE = {**NOVA, 'User-Agent': 'nova-compute keystoneauth1/5'}
NOVA_API = {**NOVA, 'User-Agent': 'nova-api keystoneauth1/5'}


class SlowConductor(LocalConductor):
    """A conductor whose binds end after a list of the ARQs."""

    def __init__(self) -> None:
        super().__init__()
        self.binds_at_once = False
        self.outcome = State.BOUND

    def _send(self, context: RequestContext, message: Message) -> Any:
        answer = super()._send(context, message)
        if message.method == 'list_arqs':
            uuids = [
                uuid
                for uuid, arq in self.arqs.items()
                if arq.state is State.BIND_STARTED
            ]
            if self.outcome is State.BOUND:
                self.database.write(complete_binds, uuids)
            else:
                for uuid in uuids:
                    self.change(tables.Arq, uuid, state=self.outcome)
        return answer


class Api:
    """An API with an instance whose bind is running."""

    def __init__(self, **options: Any) -> None:
        self.conductor = SlowConductor()
        self.stopping = threading.Event()
        inner = assemble(
            build_configuration(**options), self.conductor.client, None, self.stopping
        )
        self.is_threaded = True

        def application(environ: dict[str, Any], start_response: Any) -> Any:
            environ['wsgi.multithread'] = self.is_threaded
            return inner(environ, start_response)

        self.client = Client(self.conductor, application)
        self.client.create_profile('dp1', {'resources:FPGA': '2'})
        nova = self.client.as_(NOVA)
        self.uuids = [arq['uuid'] for arq in nova.create_arqs()]
        bind = dict.fromkeys(self.uuids, build_bind())
        assert nova.patch('/accelerator_requests', bind).status == 202

    def read(
        self,
        headers: Headers = COMPUTE,
        version: str | None = None,
        arguments: str = '',
    ) -> tuple[Answer, int]:
        """List the ARQs of the instance; return the number of reads, too."""
        before = self.conductor.count_calls('list_arqs')
        answer = self.client.as_(headers, version).get(PATH + arguments)
        return answer, self.conductor.count_calls('list_arqs') - before


@pytest.mark.parametrize('version', [None, '2.3'])
def test_list_arqs_of_instance_waits_for_bind(version: str | None) -> None:
    api = Api()
    answer, reads = api.read(version=version)
    assert (answer.status, reads) == (200, 2)
    assert [arq['uuid'] for arq in answer.json['arqs']] == api.uuids
    for arq in answer.json['arqs']:
        assert (arq['state'], arq['attach_handle_type']) == ('Bound', 'PCI')


def test_list_arqs_of_instance_failed_bind_returns_409() -> None:
    api = Api()
    api.conductor.outcome = State.BIND_FAILED
    answer, reads = api.read()
    assert (answer.status, reads) == (409, 2)


@pytest.mark.parametrize(
    ('headers', 'version', 'arguments'),
    [
        (MEMBER, None, ''),
        (ADMIN, None, ''),
        (NOVA_API, None, ''),
        (COMPUTE, '2.4', ''),
        (COMPUTE, None, '&limit=2'),
    ],
)
def test_list_arqs_of_other_clients_does_not_wait(
    headers: Headers, version: str | None, arguments: str
) -> None:
    answer, _reads = Api().read(headers, version, arguments)
    states = {arq['state'] for arq in answer.json['arqs']}
    assert (answer.status, states) == (200, {'BindStarted'})


def test_list_arqs_resolved_does_not_wait() -> None:
    assert Api().read(arguments='&bind_state=resolved')[0].status == 423


@pytest.mark.parametrize('options', [{'hold_bind': 0}, {'threads': 3}])
def test_list_arqs_hold_turned_off_does_not_wait(options: dict[str, Any]) -> None:
    answer, reads = Api(**options).read()
    assert (answer.json['arqs'][0]['state'], reads) == ('BindStarted', 1)


def test_list_arqs_single_thread_does_not_wait() -> None:
    """The process could serve no other request."""
    api = Api()
    api.is_threaded = False
    assert api.read()[0].json['arqs'][0]['state'] == 'BindStarted'


def test_list_arqs_stopping_process_does_not_wait() -> None:
    api = Api()
    api.stopping.set()
    assert api.read()[0].json['arqs'][0]['state'] == 'BindStarted'
