# SPDX-License-Identifier: Apache-2.0
"""The audit: findings, failed checks and remedies, its job and its schedule."""

import logging
import threading
from collections import Counter
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.arqs.audit import AuditHandler, AuditScheduler
from cyborg_lite.conductor.arqs.binding import BindHandler
from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.conductor.ownership.sharing import SharingCheck
from cyborg_lite.db.arqs import audit, binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import FormerServer
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.model.arqs.audit import AuditProblem, Remedy
from cyborg_lite.model.jobs import Job, JobCount, JobState, NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.orphans import EVERYBODY, RULES, Cloud
from tests.builders.rows import HOST, OWNER, PROJECT, add_arqs, owners, states
from tests.doubles.agents import FakeAgents
from tests.doubles.placement import FakePlacement
from tests.support.sql_statements import statements

LATER = datetime(2100, 1, 1, tzinfo=UTC)
WAITING = JobCount(OperationKind.AUDIT, JobState.WAITING, 1)


@pytest.fixture
def cloud(database: Database) -> Cloud:
    return Cloud(database)


def run_releases(cloud: Cloud) -> None:
    """Run all release jobs; the agents succeed."""
    for job in cloud.database.write(
        queue.lease_jobs, OWNER, 10, [OperationKind.RELEASE]
    ):
        ReleaseHandler(cloud.database, FakeAgents()).run(job)


def kinds(cloud: Cloud) -> list[str]:
    return [job.type for job in cloud.database.read(administration.list_jobs)]


# --- no findings ----------------------------------------------------------


def test_audit_consistent_cloud_has_no_findings(cloud: Cloud) -> None:
    cloud.bound()
    cloud.bound(needs_host=True)
    report = cloud.find()
    assert report.findings == ()
    assert report.failed_checks == ()


def test_audit_changed_within_grace_is_skipped(cloud: Cloud) -> None:
    uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    cloud.touch(uuid)
    add_arqs(cloud.database, 1)
    cloud.start_bind(needs_host=True)
    cloud.lose_jobs()
    assert cloud.find().findings == ()


def test_audit_slow_bind_is_not_reported(cloud: Cloud) -> None:
    uuid, instance, job = cloud.start_bind(needs_host=True)
    event = NewJob(OperationKind.NOVA_EVENT)
    cloud.database.write(binding.claim_for_bind, job, [uuid], None, event)
    # Nova may have given up, but the job of the bind has not.
    del cloud.servers.hosts[instance]
    cloud.age()
    assert cloud.find().findings == ()


def test_audit_slow_release_is_not_reported(cloud: Cloud) -> None:
    uuid, _instance = cloud.bound(needs_host=True)
    cloud.database.write(release.delete_arqs, [uuid], EVERYBODY, True, None)
    cloud.age()
    assert cloud.find().findings == ()


# --- deleted instances ------------------------------------------------------------


@pytest.mark.parametrize(
    ('trouble', 'text'),
    [
        ({'is_down': True}, 'Nova does not answer'),
        ({'configured': False}, '[nova] is not configured'),
    ],
)
def test_audit_without_answer_of_nova_is_reported(
    cloud: Cloud, trouble: dict[str, bool], text: str
) -> None:
    _uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    vars(cloud.servers).update(trouble)
    report = cloud.find()
    assert report.findings == ()
    (check,) = report.failed_checks
    assert text in check


def test_remedy_arq_deleted_is_skipped(cloud: Cloud) -> None:
    uuid, instance = cloud.bound(needs_host=True)
    del cloud.servers.hosts[instance]
    finding = cloud.only()
    cloud.database.write(release.delete_arqs_of_instance, instance, EVERYBODY, None)
    assert not cloud.remedy(finding)
    assert kinds(cloud) == ['release']
    assert states(cloud.database, [uuid]) == ['Deleting']


# --- instances without an allocation --------------------------------------------------


def test_audit_running_instance_without_allocation_has_no_remedy(cloud: Cloud) -> None:
    uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    finding = cloud.only()
    assert (finding.problem, finding.suspect.uuid) == (AuditProblem.NO_ALLOCATION, uuid)
    assert finding.remedy is None
    assert 'It may be running' in finding.reason
    assert not cloud.remedy(finding)
    assert owners(cloud.database) == [uuid]


def test_audit_more_units_than_allocated_is_reported(cloud: Cloud) -> None:
    uuid, instance = cloud.bound()
    consumer = cloud.consumers.find_consumer(instance)
    assert consumer is not None
    cloud.consumers.allocate(instance, [*consumer.providers], PROJECT, 'VGPU')
    finding = cloud.only()
    assert finding.problem is AuditProblem.MORE_THAN_ALLOCATED
    assert (finding.suspect.uuid, finding.remedy) == (uuid, None)
    assert 'Placement has 0 of PGPU' in finding.reason


def test_remedy_unplaced_instance_without_allocation_releases_handle(
    cloud: Cloud,
) -> None:
    """Nova keeps an instance whose build failed, to show the error."""
    uuid, instance = cloud.bound()
    cloud.servers.hosts[instance] = None
    assert cloud.find().findings == ()
    cloud.consumers.forget(instance)
    finding = cloud.only()
    assert finding.remedy is Remedy.DELETE
    assert cloud.remedy(finding)
    assert owners(cloud.database) == []
    assert states(cloud.database, [uuid]) == []


def test_audit_placement_of_instance_unknown_has_no_remedy(cloud: Cloud) -> None:
    _uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    cloud.servers.is_down = True
    assert cloud.only().remedy is None


def test_audit_placement_down_is_reported(cloud: Cloud) -> None:
    _uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    cloud.consumers.is_down = True
    report = cloud.find()
    assert report.findings == ()
    assert 'Placement does not answer' in report.failed_checks[0]


def test_audit_allocation_not_required_skips_check(cloud: Cloud) -> None:
    _uuid, instance = cloud.bound()
    cloud.consumers.forget(instance)
    cloud.require_allocation = False
    assert cloud.find().findings == ()


# --- abandoned ARQs -------------------------------------------------------


@pytest.mark.parametrize('state', ['Initial', 'Unbound', 'UnbindFailed', 'Deleting'])
def test_remedy_never_bound_deletes_arq(cloud: Cloud, state: str) -> None:
    """The reply to the create call was lost."""
    cloud.bound()
    (uuid,) = add_arqs(cloud.database, 1)
    cloud.set_state(uuid, state)
    finding = cloud.only()
    assert (finding.problem, finding.suspect.uuid) == (AuditProblem.NEVER_BOUND, uuid)
    assert cloud.remedy(finding)
    assert states(cloud.database, [uuid]) == []


def test_remedy_bind_started_is_skipped(cloud: Cloud) -> None:
    (uuid,) = add_arqs(cloud.database, 1)
    cloud.age()
    finding = cloud.only()
    cloud.touch(uuid)
    cloud.set_state(uuid, 'BindStarted')
    assert not cloud.remedy(finding)
    assert states(cloud.database, [uuid]) == ['BindStarted']


# --- lost binds and releases -------------------------------------------------


@pytest.mark.parametrize('needs_host', [False, True])
def test_remedy_lost_bind_fails_and_releases(cloud: Cloud, needs_host: bool) -> None:
    uuid, instance, job = cloud.start_bind(needs_host=needs_host)
    if needs_host:
        bound = NewJob(OperationKind.NOVA_EVENT)
        cloud.database.write(binding.claim_for_bind, job, [uuid], None, bound)
    cloud.lose_jobs()
    cloud.age()
    finding = next(
        finding
        for finding in cloud.find().findings
        if finding.problem is AuditProblem.BIND_LOST
    )
    assert cloud.remedy(finding)
    assert not cloud.remedy(finding), 'one job is enough'
    (late,) = cloud.database.write(queue.lease_jobs, OWNER, 10)
    assert (late.type, late.expired) == (OperationKind.BIND, True)
    agents = FakeAgents()
    handler = BindHandler(cloud.database, agents, cloud.consumers, RULES)
    event = handler.expire(late, 'too late')
    assert event is not None
    assert event.payload == {
        'instance_uuid': instance,
        'arq_uuids': [uuid],
        'succeeded': False,
        'generation': 1,
    }
    run_releases(cloud)
    assert states(cloud.database, [uuid]) == ['BindFailed']
    assert owners(cloud.database) == []


def test_remedy_lost_release_job_is_written_again(cloud: Cloud) -> None:
    uuid, _instance = cloud.bound(needs_host=True)
    cloud.database.write(release.delete_arqs, [uuid], EVERYBODY, True, None)
    cloud.lose_jobs()
    cloud.age()
    finding = cloud.only()
    assert (finding.problem, finding.suspect.uuid) == (AuditProblem.NOT_RELEASED, uuid)
    assert finding.handle_uuid is not None
    assert cloud.remedy(finding)
    assert kinds(cloud) == ['release']
    run_releases(cloud)
    assert owners(cloud.database) == []
    assert states(cloud.database, [uuid]) == []


def test_remedy_lost_bind_of_unbound_arq_releases_handle(cloud: Cloud) -> None:
    uuid, _instance, job = cloud.start_bind(needs_host=True)
    event = NewJob(OperationKind.NOVA_EVENT)
    cloud.database.write(binding.claim_for_bind, job, [uuid], None, event)
    cloud.database.write(release.unbind_arqs, [uuid], EVERYBODY, None)
    cloud.age()
    assert cloud.find().findings == (), 'the bind job ends by releasing it'
    cloud.lose_jobs()
    assert cloud.preparing() == [True]
    assert cloud.remedy(cloud.only())
    run_releases(cloud)
    assert owners(cloud.database) == []
    assert states(cloud.database, [uuid]) == ['Unbound']


@pytest.mark.parametrize('state', ['Unbound', 'BindFailed', 'Initial', 'Deleting'])
def test_remedy_local_handle_is_freed_at_once(cloud: Cloud, state: str) -> None:
    uuid, _instance = cloud.bound()
    cloud.set_state(uuid, state)
    finding = next(
        finding
        for finding in cloud.find().findings
        if finding.problem is AuditProblem.NOT_RELEASED
    )
    assert cloud.remedy(finding)
    assert owners(cloud.database) == []
    remaining = [] if state == 'Deleting' else [state]
    assert states(cloud.database, [uuid]) == remaining


def test_remedy_failed_release_is_retried(cloud: Cloud) -> None:
    uuid, _instance = cloud.bound(needs_host=True)
    cloud.database.write(release.delete_arqs, [uuid], EVERYBODY, True, None)
    (job,) = cloud.database.write(queue.lease_jobs, OWNER, 10)
    cloud.database.write(queue.fail_job, job, 'An operator cancelled it.')
    cloud.age()
    finding = cloud.only()
    assert finding.problem is AuditProblem.RELEASE_FAILED
    assert finding.job_uuid == job.uuid
    assert job.uuid in finding.reason
    assert cloud.remedy(finding)
    (next_job,) = cloud.database.read(administration.list_jobs)
    assert (next_job.uuid, next_job.state) == (job.uuid, JobState.WAITING)
    run_releases(cloud)
    assert owners(cloud.database) == []


def test_remedy_release_scheduled_meanwhile_is_skipped(cloud: Cloud) -> None:
    uuid, _instance = cloud.bound(needs_host=True)
    cloud.database.write(release.delete_arqs, [uuid], EVERYBODY, True, None)
    cloud.lose_jobs()
    cloud.age()
    finding = cloud.only()
    # Nova deletes once more.
    cloud.database.write(release.delete_arqs, [uuid], EVERYBODY, True, None)
    assert not cloud.remedy(finding)
    assert kinds(cloud) == ['release']


# --- cost -----------------------------------------------------------------------------


def test_audit_statement_count_is_constant(cloud: Cloud) -> None:
    counts = []
    for _ in range(2):
        cloud.bound()
        cloud.bound()
        with statements(cloud.database) as sql:
            cloud.find()
        counts.append(len(sql))
    assert counts[0] == counts[1]


# --- jobs -----------------------------------------------------------------------------


def due(database: Database) -> Job:
    database.write(queue.add_job, NewJob(OperationKind.AUDIT, key='orphans'))
    (job,) = database.write(queue.lease_jobs, OWNER, 10)
    return job


def run_audit(cloud: Cloud, *, reap: bool = False) -> None:
    AuditHandler(cloud.database, cloud.audit, reap).run(due(cloud.database))


@pytest.mark.parametrize('reap', [False, True])
def test_audit_job_applies_remedies_only_if_enabled(
    cloud: Cloud, caplog: pytest.LogCaptureFixture, reap: bool
) -> None:
    uuid, instance = cloud.bound()
    del cloud.servers.hosts[instance]
    with caplog.at_level(logging.INFO):
        run_audit(cloud, reap=reap)
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0] == (
        f'Audit: server-gone, ARQ {uuid}: Instance {instance} does not exist in Nova.'
    )
    assert messages[1] == 'Audit completed with 1 findings'
    assert states(cloud.database, [uuid]) == ([] if reap else ['Bound'])
    assert owners(cloud.database) == ([] if reap else [uuid])
    assert kinds(cloud) == []


def test_audit_job_reports_conflicts_with_nova(
    cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    database, counts = cloud.database, Counter[str]()
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
    handler.run(due(database))
    assert counts == {'no-arq': 1}
    assert f'Instance {foreign} has allocated 1 PGPU without an ARQ' in caplog.text
    assert owners(database) == [uuid]
    cloud.servers.is_down = True
    handler.run(due(database))
    assert 'Audit is incomplete: Placement is not checked' in caplog.text


def test_audit_job_expired_is_finished(cloud: Cloud) -> None:
    handler = AuditHandler(cloud.database, cloud.audit, reap=True)
    handler.expire(due(cloud.database), 'cancelled')
    assert kinds(cloud) == []


# --- schedule -------------------------------------------------------------------------


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


# --- servers that may come back -------------------------------------------------------


def test_former_server_deleted_in_nova_is_deleted(cloud: Cloud) -> None:
    shelved, deleted = cloud.add_former_instance(), cloud.add_former_instance()
    del cloud.servers.hosts[deleted]
    run_audit(cloud)
    assert cloud.list_former_instances() == [shelved]


def test_former_server_nova_down_is_retained(
    cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    deleted = cloud.add_former_instance()
    del cloud.servers.hosts[deleted]
    cloud.servers.is_down = True
    run_audit(cloud)
    assert cloud.list_former_instances() == [deleted]
    assert 'Records of 1 former servers not checked' in caplog.text


def test_former_server_without_nova_is_deleted(cloud: Cloud) -> None:
    cloud.add_former_instance()
    cloud.servers.configured = False
    run_audit(cloud)
    assert cloud.list_former_instances() == []


def test_former_server_within_grace_is_retained(cloud: Cloud) -> None:
    instance = cloud.add_former_instance()
    del cloud.servers.hosts[instance]
    now = update(FormerServer).values(released_at=datetime.now(UTC))
    cloud.database.write(lambda session: session.execute(now))
    run_audit(cloud)
    assert cloud.list_former_instances() == [instance]
