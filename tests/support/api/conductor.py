# SPDX-License-Identifier: Apache-2.0
"""The services of a conductor on SQLite, in the process of the test.

Calls pass through the client, the codec and the dispatcher, but over no message bus. No
jobs run. A bind succeeds at once, as after its job.
"""

import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, cast
from uuid import uuid4

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.hosts.heartbeat_batch import HeartbeatBatch
from cyborg_lite.conductor.jobs.runner import JobRunner, Workers
from cyborg_lite.conductor.service import (
    ConductorService,
    ConductorSettings,
    Connections,
)
from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable
from cyborg_lite.db.devices import deployables, devices
from cyborg_lite.db.jobs import operations
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.arqs import arqs as arq_model
from cyborg_lite.model.capacity.explanations import ProviderCapacity
from cyborg_lite.model.devices.devices import DeployableRecord, DeviceRecord
from cyborg_lite.model.jobs import Job, Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.arguments import dump_answer
from cyborg_lite.rpc.client import build_conductor, serve_locally
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.methods import CONDUCTOR
from cyborg_lite.rpc.transport import Message, Transport
from tests.builders.bind_rules import RULES
from tests.builders.cloud_clients import create_nova_client
from tests.builders.device_rows import add_deployable_row
from tests.builders.stock import build_answers
from tests.doubles.agents import FakeAgents
from tests.doubles.placement import FakePlacement
from tests.servers.databases import ReusedEngines, create_sqlite_file

HANDLE: Final = {
    'domain': '0000',
    'bus': '0c',
    'device': '00',
    'function': '0',
    'managed': 'true',
}

# No call reaches a message bus.
_NO_BUS: Final = cast(Transport, None)

_SETTINGS: Final = ConductorSettings(
    host='controller-1',
    rules=RULES,
    workers=Workers(number=8, per_host=8),
    job_lease=30,
    agent_timeout=30,
    agent_down_after=100,
    placement_audit_interval=3600,
    audit_interval=3600,
    orphan_grace=3600,
    reap_orphans=False,
    metrics_host='127.0.0.1',
    metrics_ports=range(0),
    serves_each_device=False,
    load_timeout=180,
    largest_image=1 << 30,
)


class IdleRunner(JobRunner):
    """Runner whose jobs stay in the table."""

    def run(self, job: Job) -> None:
        """Do nothing."""


class LocalConductor:
    """A conductor that a test can look into."""

    def __init__(self, database: Database | None = None) -> None:
        """Create the services.

        :param database: None: a new one, with the schema and no rows
        """
        self.database = database or _create_database(self)
        self.agents, self.placement = FakeAgents(), FakePlacement()
        self.calls: list[tuple[RequestContext, Message]] = []
        # By method, what replaces its service: an answer, an error, or a function of
        # the arguments that returns the answer.
        self.answers: dict[str, object] = {}
        self.refusal: Exception | None = None  # raised by every call
        self.binds_at_once = True  # False: binds stay in progress
        service = ConductorService(
            Connections(
                _NO_BUS, self.database, self.placement, create_nova_client(None)
            ),
            _SETTINGS,
        )
        dependencies = service.build_dependencies(self.agents)
        runner = IdleRunner(self.database, {}, Owner('test', 30_000), _SETTINGS.workers)
        heartbeats = HeartbeatBatch(self.database, threading.Event())
        self.dispatcher = service.build_dispatcher(dependencies, runner, heartbeats)
        self.watch = service.watch
        self._serve = serve_locally(self.dispatcher)
        self.client = build_conductor(self._send)

    @property
    def callers(self) -> list[RequestContext]:
        """The contexts of the calls."""
        return [context for context, _message in self.calls]

    def count_calls(self, method: str) -> int:
        """Return the number of calls of a method."""
        return sum(message.method == method for _context, message in self.calls)

    # Any, here and below: arguments and answers of any class, JSON.
    def list_arguments(self, method: str, name: str) -> list[Any]:
        """Return an argument of each call of a method, as the service receives it."""
        defaults = CONDUCTOR.methods[method].defaults
        return [
            {**defaults, **_load_arguments(message)}[name]
            for _context, message in self.calls
            if message.method == method
        ]

    def stock_up(self, stock: Sequence[ProviderCapacity]) -> None:
        """Explain device profiles, and count their capacity, with these providers."""
        self.answers |= build_answers(lambda uuid: self.profiles[uuid], stock)

    # --- the stored objects, by uuid ---

    @property
    def arqs(self) -> dict[str, arq_model.Arq]:
        """The ARQs of all projects."""
        everybody = arq_model.Scope(project_id=None)
        return _index(self.database.read(arqs.list_arqs, Query(), everybody))

    @property
    def profiles(self) -> dict[str, DeviceProfile]:
        """The device profiles."""
        return _index(self.database.read(profiles.list_profiles, Query()))

    @property
    def devices(self) -> dict[str, DeviceRecord]:
        """The devices."""
        return _index(self.database.read(devices.list_devices, Query(detailed=True)))

    @property
    def deployables(self) -> dict[str, DeployableRecord]:
        """The deployables."""
        return _index(self.database.read(deployables.list_deployables, Query()))

    def change(self, table: type[Any], uuid: str, **columns: Any) -> None:
        """Change columns of a row."""
        statement = update(table).where(table.uuid == uuid).values(**columns)
        self.database.write(lambda session: session.execute(statement))

    def _send(self, context: RequestContext, message: Message) -> Any:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append((context, message))
        if message.method in self.answers:
            answer = self.answers[message.method]
            if isinstance(answer, Exception):
                raise answer
            if callable(answer):
                answer = answer(**_load_arguments(message))
            return dump_answer(CONDUCTOR.methods[message.method].answer, answer)
        answer = self._serve(context, message)
        if message.method == 'bind_arqs' and self.binds_at_once:
            self.database.write(complete_binds, list(message.arguments['bindings']))
        return answer


def _load_arguments(message: Message) -> dict[str, Any]:
    return CONDUCTOR.methods[message.method].load_arguments(message.arguments)


def _index(records: Iterable[Any]) -> dict[str, Any]:
    return {record.uuid: record for record in records}


def _create_database(owner: object) -> Database:
    """Create a database that exists as long as its owner."""
    directory = Path(tempfile.mkdtemp())
    database = ReusedEngines(create_sqlite_file(directory / 'cyborg_lite.sqlite'))
    weakref.finalize(owner, _drop_database, database, directory)
    return database


def _drop_database(database: Database, directory: Path) -> None:
    database.close()
    shutil.rmtree(directory)


def complete_binds(session: Session, uuids: list[str]) -> None:
    """Give each ARQ a handle of the provider of its bind."""
    for arq in session.scalars(select(Arq).where(Arq.uuid.in_(uuids))):
        arq.state = 'Bound'
        is_provider = Deployable.rp_uuid == arq.device_rp_uuid
        deployable = session.scalar(select(Deployable).where(is_provider))
        deployable = deployable or add_deployable_row(
            session, hostname=arq.hostname or '', rp_uuid=arq.device_rp_uuid
        )
        session.add(
            AttachHandle(
                uuid=str(uuid4()),
                deployable_id=deployable.id,
                key=str(uuid4()),
                type='PCI',
                info=HANDLE,
                arq_uuid=arq.uuid,
            )
        )
        subjects = [arq.instance_uuid or '']
        unfinished = operations.list_unfinished(session, OperationKind.BIND, subjects)
        operations.end_job(session, unfinished)
