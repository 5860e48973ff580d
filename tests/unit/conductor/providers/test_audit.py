# SPDX-License-Identifier: Apache-2.0
"""The loop that schedules Placement audits."""

import threading
from uuid import uuid4

from cyborg_lite.conductor.providers.host_jobs import PlacementAuditScheduler
from cyborg_lite.conductor.providers.sync import (
    PlacementSync,
    PlacementSyncHandler,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.jobs import Owner
from tests.builders.provider_rows import add_device, change_device
from tests.builders.service_rows import add_audited_agents
from tests.doubles.placement import FakePlacement


def run_once(database: Database, interval: float) -> tuple[int, int]:
    """Schedule once; return the numbers of jobs and of wake-ups."""
    woken: list[bool] = []
    stopping = threading.Event()
    scheduler = PlacementAuditScheduler(
        database, lambda: woken.append(True), interval, stopping
    )
    scheduler.schedule()
    stopping.set()
    scheduler.run()
    waiting = sum(count.count for count in database.read(queue.count_jobs))
    return waiting, len(woken)


def test_schedule_writes_jobs_of_due_hosts(database: Database) -> None:
    assert run_once(database, 3600.0) == (0, 0)
    add_audited_agents(database, 60)
    assert run_once(database, 3600.0) == (1, 1)


def test_schedule_interval_zero_covers_only_conflicts(database: Database) -> None:
    add_audited_agents(database, 60)
    assert run_once(database, 0) == (0, 0)
    change_device(database, add_device(database, 'host', 'x'), conflict='nova')
    assert run_once(database, 0) == (1, 1)


def test_schedule_unchanged_host_costs_two_requests(database: Database) -> None:
    host = 'compute-0'
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), host, None)
    sync = PlacementSync(database, placement)
    gpu = add_device(database, host, 'gpu')
    add_device(database, host, 'nic')
    sync.sync(host)
    for damage, requests in ((False, 2), (True, 5), (False, 2)):
        add_audited_agents(database, 1)
        if damage:
            placement.providers[gpu].inventories = {}
            placement.providers[gpu].touch()
        placement.calls.clear()
        run_once(database, 300.0)
        (job,) = database.write(queue.lease_jobs, Owner('me', 30_000), 1)
        PlacementSyncHandler(database, sync).run(job)
        assert len(placement.calls) == requests
    assert placement.providers[gpu].inventories
