# SPDX-License-Identifier: Apache-2.0
"""Recovery after a host reboot: Provisioning, then Bound or BindFailed."""

from collections.abc import Sequence

import pytest
from sqlalchemy import select

from cyborg_lite.db.arqs import attach_handles, recovery, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.jobs.queue import read_payload
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import RecoveryResult
from cyborg_lite.model.hosts.services import AGENT, HeartbeatDetails
from cyborg_lite.model.jobs import ConnectPayload, Job
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_jobs import ANY_PROJECT
from tests.builders.bound_arqs import (
    create_bound_arqs,
    create_bound_instance,
    read_history,
)
from tests.builders.rows import HOST, OWNER, states
from tests.builders.table_rows import read_column

LIMITS = recovery.JobLimits(60_000, 3_600_000)


@pytest.fixture
def rebooted_once(database: Database) -> Database:
    """Return a database that has the boot id of the host."""
    database.write(agents.store_digest, HOST, 'digest', 'boot-1')
    return database


def find_handles(database: Database, uuids: Sequence[str]) -> list[str]:
    """Return the uuids of the handles of ARQs, in the order of the ARQs."""
    handles = database.read(attach_handles.list_handles_of_arqs, uuids)
    return [
        handle.uuid for uuid in uuids for handle in handles if handle.arq_uuid == uuid
    ]


def record_reboot(database: Database, boot_id: str = 'boot-2') -> bool:
    return database.write(recovery.record_host_reboot, HOST, boot_id)


def record_recovery(
    database: Database,
    rebuilt: Sequence[str] = (),
    reasons: dict[str, str] | None = None,
    connecting: Sequence[str] = (),
) -> tuple[AllocatedHandle, ...]:
    result = RecoveryResult(
        HOST, 'boot-2', tuple(rebuilt), reasons or {}, tuple(connecting)
    )
    return database.write(recovery.record_recovery, result, LIMITS)


def lease_jobs(database: Database) -> list[Job]:
    return list(database.write(queue.lease_jobs, OWNER, 99))


def list_nova_events(database: Database) -> list[tuple[list[str], bool]]:
    """Lease all jobs; return ARQs and result of the events for Nova."""
    return [
        (job.payload['arq_uuids'], job.payload['succeeded'])
        for job in lease_jobs(database)
        if job.type == OperationKind.NOVA_EVENT
    ]


# --- host reboot --------------------------------------------------------------------


def test_host_reboot_sets_host_arqs_to_provisioning(rebooted_once: Database) -> None:
    on_host = create_bound_arqs(rebooted_once, 2)
    by_itself = create_bound_arqs(rebooted_once, 1, needs_host=False)
    assert record_reboot(rebooted_once)
    assert states(rebooted_once, on_host) == [State.PROVISIONING] * 2
    assert states(rebooted_once, by_itself) == [State.BOUND]
    last = read_history(rebooted_once, on_host[0])[-1]
    assert (last.step, last.actor) == ('Provisioning', 'conductor')


def test_host_reboot_is_recorded_once(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    assert record_reboot(rebooted_once)
    steps = len(read_history(rebooted_once, uuids[0]))
    assert not record_reboot(rebooted_once)
    assert len(read_history(rebooted_once, uuids[0])) == steps


@pytest.mark.parametrize('boot_id', ['boot-1', ''])
def test_host_reboot_same_boot_id_changes_nothing(
    rebooted_once: Database, boot_id: str
) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    assert not record_reboot(rebooted_once, boot_id)
    assert states(rebooted_once, uuids) == [State.BOUND]


def test_host_reboot_first_boot_id_changes_nothing(database: Database) -> None:
    uuids = create_bound_arqs(database, 1)
    no_result = database.write(services.record_heartbeat, AGENT, HOST, '1.0')
    assert no_result is None
    assert not record_reboot(database, 'boot-1')
    assert states(database, uuids) == [State.BOUND]


def test_host_reboot_clears_digest(rebooted_once: Database) -> None:
    record_reboot(rebooted_once)
    agent = rebooted_once.read(agents.find_agent, HOST)
    assert agent is not None
    assert (agent.digest, agent.boot_id) == (None, 'boot-2')


def test_host_reboot_does_not_change_other_host(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    rebooted_once.write(agents.store_digest, 'compute-2', 'digest', 'boot-1')
    assert rebooted_once.write(recovery.record_host_reboot, 'compute-2', 'boot-2')
    assert states(rebooted_once, uuids) == [State.BOUND]


def test_heartbeat_new_boot_id_records_reboot(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    same_boot, next_boot = HeartbeatDetails('boot-1'), HeartbeatDetails('boot-2')
    record_heartbeat = services.record_agent_heartbeat
    assert not rebooted_once.write(record_heartbeat, HOST, '1.0', 'digest', same_boot)
    assert states(rebooted_once, uuids) == [State.BOUND]
    assert rebooted_once.write(record_heartbeat, HOST, '1.0', 'digest', next_boot)
    assert states(rebooted_once, uuids) == [State.PROVISIONING]


# --- results of the agent -----------------------------------------------------------


def test_recovery_before_reboot_record_is_stored(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    record_recovery(rebooted_once, find_handles(rebooted_once, uuids))
    assert states(rebooted_once, uuids) == [State.BOUND]
    assert list_nova_events(rebooted_once) == [(uuids, True)]
    assert not record_reboot(rebooted_once)


def test_recovery_again_changes_nothing(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    rebuilt = find_handles(rebooted_once, uuids)
    record_recovery(rebooted_once, rebuilt)
    lease_jobs(rebooted_once)
    record_recovery(rebooted_once, rebuilt)
    assert list_nova_events(rebooted_once) == []


def test_recovery_lost_arq_fails_and_is_released(rebooted_once: Database) -> None:
    """The failure of an ARQ does not affect the others."""
    rebuilt, failed = uuids = create_bound_arqs(rebooted_once, 2)
    rebuilt_handle, failed_handle = find_handles(rebooted_once, uuids)
    record_reboot(rebooted_once)
    reasons = {failed_handle: 'No such type.' + 'x' * 999}
    assert record_recovery(rebooted_once, [rebuilt_handle], reasons) == ()
    assert states(rebooted_once, uuids) == [State.BOUND, State.BIND_FAILED]
    jobs = lease_jobs(rebooted_once)
    assert sorted(
        (job.payload['arq_uuids'], job.payload['succeeded'])
        for job in jobs
        if job.type == OperationKind.NOVA_EVENT
    ) == sorted([([rebuilt], True), ([failed], False)])
    (release_job,) = (job for job in jobs if job.type == OperationKind.RELEASE)
    assert release_job.payload == {'handle_uuid': failed_handle}
    last = read_history(rebooted_once, failed)[-1]
    assert (last.step, last.actor) == ('BindFailed', 'agent')
    assert last.reason is not None
    assert last.reason.startswith('No such type.')
    stored_reason = select(Arq.status_reason).where(Arq.uuid == failed)
    assert read_column(rebooted_once, stored_reason) == [last.reason]
    find_unclean = attach_handles.find_unclean_handle
    assert rebooted_once.read(find_unclean, failed_handle) is not None


def test_recovery_adds_connect_job_of_rebuilt_handles(rebooted_once: Database) -> None:
    uuids, instance = create_bound_instance(rebooted_once, 3, needs_host=True)
    plain, connecting, failed = find_handles(rebooted_once, uuids)
    reasons = {failed: 'No such type.'}
    record_recovery(rebooted_once, [plain, connecting], reasons, [connecting, failed])
    (job,) = (
        job for job in lease_jobs(rebooted_once) if job.type == OperationKind.CONNECT
    )
    payload = read_payload(ConnectPayload, job.payload)
    assert (payload.arq_uuids, payload.instance_uuid) == ((uuids[1],), instance)


def test_recovery_of_other_host_changes_nothing(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    record_reboot(rebooted_once)
    handles = tuple(find_handles(rebooted_once, uuids))
    result = RecoveryResult('compute-2', 'boot-2', handles, {})
    assert rebooted_once.write(recovery.record_recovery, result, LIMITS) == ()
    assert states(rebooted_once, uuids) == [State.PROVISIONING]


def test_recovery_deleted_arq_stays_deleting(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    record_reboot(rebooted_once)
    rebuilt = find_handles(rebooted_once, uuids)
    rebooted_once.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    assert record_recovery(rebooted_once, rebuilt) == ()
    assert states(rebooted_once, uuids) == [State.DELETING]
    assert list_nova_events(rebooted_once) == []


def test_host_reboot_twice_keeps_provisioning(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    record_reboot(rebooted_once)
    record_reboot(rebooted_once, 'boot-3')
    assert states(rebooted_once, uuids) == [State.PROVISIONING]
