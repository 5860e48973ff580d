# SPDX-License-Identifier: Apache-2.0
"""The audit job, and the loop that schedules it."""

import logging
import threading
from collections import Counter
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.arqs.audit import AuditHandler, AuditScheduler
from cyborg_lite.conductor.ownership.sharing import SharingCheck
from cyborg_lite.db.arqs import audit
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import FormerServer
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.jobs import Job, JobCount, JobState, NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.orphans import Cloud
from tests.builders.rows import HOST, OWNER, PROJECT, owners, states
from tests.doubles.placement import FakePlacement

LATER = datetime(2100, 1, 1, tzinfo=UTC)
WAITING = JobCount(OperationKind.AUDIT, JobState.WAITING, 1)


def due(database: Database) -> Job:
    database.write(queue.add_job, NewJob(OperationKind.AUDIT, key='orphans'))
    (job,) = database.write(queue.lease_jobs, OWNER, 10)
    return job


@pytest.mark.parametrize('reap', [False, True])
def test_audit_job_applies_remedies_only_if_enabled(
    database: Database, caplog: pytest.LogCaptureFixture, reap: bool
) -> None:
    cloud = Cloud(database)
    uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    with caplog.at_level(logging.INFO):
        assert AuditHandler(database, cloud.audit, reap).run(due(database)) is None
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == (
        f'Audit: server-gone, ARQ {uuid}: Instance {instance} does not exist in Nova.'
    )
    assert messages[1] == 'Audit completed with 1 findings'
    assert states(database, [uuid]) == ([] if reap else ['Bound'])
    assert owners(database) == ([] if reap else [uuid])
    assert database.read(queue.count_jobs) == ()


def test_audit_job_finding_without_remedy_is_logged(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    cloud = Cloud(database)
    uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    AuditHandler(database, cloud.audit, reap=True).run(due(database))
    assert 'no-allocation' in caplog.text
    assert owners(database) == [uuid]


def test_audit_job_reports_conflicts_with_nova(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    cloud, counts = Cloud(database), Counter[str]()
    uuid, _ = cloud.bound()
    (arq,) = database.read(audit.list_arqs_with_device, LATER, 0, 10)
    foreign = str(uuid4())
    cloud.consumers.allocate(foreign, [arq.device_rp_uuid or ''], PROJECT)
    cloud.servers.hosts[foreign] = HOST
    sharing = SharingCheck(database, FakePlacement())

    def count(problem: str) -> None:
        counts[problem] += 1

    handler = AuditHandler(
        database, cloud.audit, reap=True, sharing=sharing, count_finding=count
    )
    assert handler.run(due(database)) is None
    assert counts == {'no-arq': 1}
    assert f'Instance {foreign} has allocated 1 PGPU without an ARQ' in caplog.text
    assert owners(database) == [uuid]
    cloud.servers.is_down = True
    handler.run(due(database))
    assert 'Audit is incomplete: Placement is not checked' in caplog.text


def test_audit_job_expired_is_finished(database: Database) -> None:
    handler = AuditHandler(database, Cloud(database).audit, reap=True)
    assert handler.expire(due(database), 'cancelled') is None
    assert database.read(queue.count_jobs) == ()


def test_scheduler_two_conductors_write_one_job(database: Database) -> None:
    woken = threading.Semaphore(0)
    stopping = threading.Event()
    schedulers = [
        AuditScheduler(database, woken.release, 0.01, stopping)
        for _conductor in range(2)
    ]
    loops = [threading.Thread(target=scheduler.run) for scheduler in schedulers]
    for loop in loops:
        loop.start()
    for _ in range(4):
        assert woken.acquire(timeout=10)
    stopping.set()
    for loop in loops:
        loop.join(10)
        assert not loop.is_alive()
    assert database.read(queue.count_jobs) == (WAITING,)


def test_scheduler_interval_zero_writes_no_job(database: Database) -> None:
    AuditScheduler(database, lambda: None, 0, threading.Event()).run()
    assert database.read(queue.count_jobs) == ()


def test_scheduler_database_down_continues() -> None:
    stopping = threading.Event()
    broken = Database('sqlite:////nowhere/at/all.sqlite')
    loop = threading.Thread(
        target=AuditScheduler(broken, stopping.set, 0.01, stopping).run
    )
    loop.start()
    loop.join(0.3)
    assert loop.is_alive()
    stopping.set()
    loop.join(10)
    assert not loop.is_alive()


# --- servers that may come back ----------------------------------------------------


def run_audit(database: Database, cloud: Cloud) -> None:
    AuditHandler(database, cloud.audit, reap=False).run(due(database))


def test_former_server_deleted_in_nova_is_deleted(database: Database) -> None:
    cloud = Cloud(database)
    shelved, deleted = cloud.add_former_instance(), cloud.add_former_instance()
    del cloud.servers.hosts[deleted]
    run_audit(database, cloud)
    assert cloud.list_former_instances() == [shelved]


def test_former_server_nova_down_is_retained(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    cloud = Cloud(database)
    deleted = cloud.add_former_instance()
    del cloud.servers.hosts[deleted]
    cloud.servers.is_down = True
    run_audit(database, cloud)
    assert cloud.list_former_instances() == [deleted]
    assert 'Records of 1 former servers not checked' in caplog.text


def test_former_server_without_nova_is_deleted(database: Database) -> None:
    cloud = Cloud(database)
    cloud.add_former_instance()
    cloud.servers.configured = False
    run_audit(database, cloud)
    assert cloud.list_former_instances() == []


def test_former_server_within_grace_is_retained(database: Database) -> None:
    cloud = Cloud(database)
    instance = cloud.add_former_instance()
    del cloud.servers.hosts[instance]
    now = update(FormerServer).values(released_at=datetime.now(UTC))
    database.write(lambda session: session.execute(now))
    run_audit(database, cloud)
    assert cloud.list_former_instances() == [instance]
