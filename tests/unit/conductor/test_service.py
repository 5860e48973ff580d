# SPDX-License-Identifier: Apache-2.0
"""The table of job handlers."""

import threading
from types import SimpleNamespace
from typing import Any

from cyborg_lite.conductor.service import HANDLERS, ConductorService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.model.operations import OperationKind
from tests.support.api.conductor import LocalConductor

# Their jobs are of the kind reconcile.
_KINDS = set(OperationKind) - {OperationKind.REFRESH, OperationKind.FORGET}


def test_handlers_table_covers_all_job_types() -> None:
    assert set(HANDLERS) == _KINDS


def test_services_implement_each_method_of_interface() -> None:
    assert LocalConductor().dispatcher.list_missing() == ()


def test_send_heartbeats_stores_time_of_last_start(database: Database) -> None:
    stopping = threading.Event()
    stopping.set()
    daemon: Any = SimpleNamespace(
        _connections=SimpleNamespace(database=database),
        _settings=SimpleNamespace(agent_down_after=100.0, host='ctl1'),
        _stopping=stopping,
    )
    started = []
    for _ in range(2):
        ConductorService._send_heartbeats(daemon)
        (conductor,) = database.read(services.list_services)
        started.append(conductor.started_at)
    assert started[0] < started[1]
