# SPDX-License-Identifier: Apache-2.0
"""RPC calls of the API and bytes of their replies for pages of 1,000 rows.

The API and a conductor with SQLite run in this process.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from oslo_config import cfg
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cyborg_lite import conf as configuration
from cyborg_lite.api.app import assemble
from cyborg_lite.cmd.daemons import conductor
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, Job
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.hosts.services import CONDUCTOR
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import build_conductor
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.methods import CONDUCTOR as CONDUCTOR_CALLS
from tests.builders.bound_arqs import add_bound_arqs
from tests.builders.reports import HOST, host
from tests.builders.rows import add_profile
from tests.servers.databases import create_sqlite_file
from tests.support.api.conversation import Client, build_configuration

_HOSTS, _CARDS = 20, 50
_ROWS = _HOSTS * _CARDS


@pytest.fixture(scope='module')
def conf(tmp_path_factory: pytest.TempPathFactory) -> cfg.ConfigOpts:
    """Return the configuration of a conductor whose database has 1,000 rows each."""
    directory: Path = tmp_path_factory.mktemp('lists')
    connection = create_sqlite_file(directory / 'db.sqlite')
    database = Database(connection)
    for number in range(_HOSTS):
        database.write(reports.store_report, _report(number))
    profile = add_profile(database, [{'resources:PGPU': '1'}])
    database.write(add_bound_arqs, profile, _ROWS)
    database.write(_assign_handles)
    database.close()
    file = directory / 'cyborg-lite.conf'
    file.write_text(
        f'[DEFAULT]\ntransport_url = local:///{uuid4()}\nhost = controller-1\n'
        f'[database]\nconnection = {connection}\n'
        '[placement]\nendpoint_override = http://127.0.0.1:1\nconnect_retries = 0\n'
    )
    return configuration.parse(['--config-file', str(file)], CONDUCTOR)


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


@pytest.fixture(scope='module')
def bus(conf: cfg.ConfigOpts) -> Iterator[transport.Transport]:
    service = conductor.build(conf)
    service.start()
    yield transport.connect(conf)
    service.stop()
    service.wait()


@pytest.fixture
def replies() -> list[tuple[str, int]]:
    return []


@pytest.fixture
def client(bus: transport.Transport, replies: list[tuple[str, int]]) -> Client:
    """Return a client of the API that records methods and bytes of the replies."""
    caller = transport.Caller(bus, CONDUCTOR_CALLS.topic, CONDUCTOR_CALLS.version)

    # Any: the reply is JSON.
    def send(context: RequestContext, message: transport.Message) -> Any:
        reply = caller.send(context, message)
        replies.append((message.method, len(json.dumps(reply))))
        return reply

    application = assemble(build_configuration(), build_conductor(send))
    return Client(application=application, is_described=False)


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
