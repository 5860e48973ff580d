# SPDX-License-Identifier: Apache-2.0
"""RPC calls of the API and bytes of their replies for pages of 1,000 rows."""

import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cyborg_lite.api.app import assemble
from cyborg_lite.db.core.tables import Arq, AttachHandle, Job
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.rpc.client import build_conductor, serve_locally
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Message
from tests.builders.bound_arqs import add_bound_arqs
from tests.builders.reports import HOST, host
from tests.builders.rows import add_profile
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import Client, build_configuration

_HOSTS, _CARDS = 20, 50
_ROWS = _HOSTS * _CARDS


@pytest.fixture(scope='module')
def conductor() -> LocalConductor:
    """Return a conductor whose database has 1,000 rows each."""
    conductor = LocalConductor()
    database = conductor.database
    for number in range(_HOSTS):
        database.write(reports.store_report, _report(number))
    profile = add_profile(database, [{'resources:PGPU': '1'}])
    database.write(add_bound_arqs, profile, _ROWS)
    database.write(_assign_handles)
    return conductor


def _report(number: int) -> HostReport:
    """Return the report of one of the hosts."""
    hostname = f'compute-{number:04}'
    report = host(_CARDS, 1)
    devices = [
        replace(
            device,
            hardware_id=f'{number}-{device.hardware_id}',
            root=replace(device.root, name=device.root.name.replace(HOST, hostname)),
        )
        for device in report.devices
    ]
    return replace(report, hostname=hostname, devices=tuple(devices))


def _assign_handles(session: Session) -> None:
    """Let each ARQ own a handle, and delete the Placement sync jobs."""
    session.execute(delete(Job))
    handles = session.scalars(select(AttachHandle.id).order_by(AttachHandle.id))
    arqs = session.scalars(select(Arq.uuid).order_by(Arq.id))
    pairs = zip(handles, arqs, strict=True)
    session.execute(
        update(AttachHandle),
        [{'id': handle, 'arq_uuid': uuid} for handle, uuid in pairs],
    )


@pytest.fixture
def replies() -> list[tuple[str, int]]:
    return []


@pytest.fixture
def client(conductor: LocalConductor, replies: list[tuple[str, int]]) -> Client:
    """Return a client of the API that records methods and bytes of the replies."""
    serve = serve_locally(conductor.dispatcher)

    # Any: the reply is JSON.
    def send(context: RequestContext, message: Message) -> Any:
        reply = serve(context, message)
        replies.append((message.method, len(json.dumps(reply))))
        return reply

    application = assemble(build_configuration(), build_conductor(send))
    return Client(conductor, application, is_described=False)


@pytest.mark.parametrize(
    ('path', 'version', 'bytes_per_row'),
    [
        ('devices', '2.0', 51),
        ('devices', 'latest', 92),
        ('accelerator_requests', '2.0', 142),
        ('accelerator_requests', 'latest', 234),
    ],
)
def test_page_is_one_call_with_few_bytes_per_row(
    client: Client,
    replies: list[tuple[str, int]],
    path: str,
    version: str,
    bytes_per_row: int,
) -> None:
    """The limits are a sixth above the measured sizes."""
    member = 'devices' if path == 'devices' else 'arqs'
    answer = client.at(version).get(f'/{path}?limit={_ROWS}')
    assert len(answer.json[member]) == _ROWS
    ((method, size),) = replies
    assert method == f'list_{member}'
    assert size < bytes_per_row * _ROWS
