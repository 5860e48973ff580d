# SPDX-License-Identifier: Apache-2.0
"""Recovery after a host reboot: Provisioning, then Bound or BindFailed."""

from collections.abc import Sequence

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import arqs, attach_handles, recovery, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.jobs.payloads import read_payload
from cyborg_lite.model.arqs.arqs import Scope, State
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import RecoveryResult
from cyborg_lite.model.hosts.services import AGENT, HeartbeatDetails
from cyborg_lite.model.jobs import ConnectPayload, Job
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bound_arqs import create_bound_arqs, read_history
from tests.builders.rows import HOST, OWNER

ANY_PROJECT = Scope(project_id=None)
LIMITS = recovery.JobLimits(60_000, 3_600_000)


@pytest.fixture
def rebooted_once(database: Database) -> Database:
    """Return a database that has the boot id of the host."""
    database.write(agents.store_digest, HOST, 'digest', 'boot-1')
    return database


def read_states(database: Database, uuids: Sequence[str]) -> list[str]:
    state_by_uuid = {
        arq.uuid: arq.state
        for arq in database.read(arqs.list_arqs, Query(), ANY_PROJECT)
    }
    return [state_by_uuid[uuid] for uuid in uuids]


def handles_by_arq(
    database: Database, uuids: Sequence[str]
) -> dict[str, AllocatedHandle]:
    """Return the handles by ARQ."""
    return {
        handle.arq_uuid: handle
        for handle in database.read(attach_handles.list_handles_of_arqs, uuids)
    }


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
    assert read_states(rebooted_once, on_host) == [State.PROVISIONING] * 2
    assert read_states(rebooted_once, by_itself) == [State.BOUND]
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
    assert read_states(rebooted_once, uuids) == [State.BOUND]


def test_host_reboot_first_boot_id_changes_nothing(database: Database) -> None:
    uuids = create_bound_arqs(database, 1)
    no_result = database.write(services.record_heartbeat, AGENT, HOST, '1.0')
    assert no_result is None
    assert not record_reboot(database, 'boot-1')
    assert read_states(database, uuids) == [State.BOUND]


def test_host_reboot_clears_digest(rebooted_once: Database) -> None:
    record_reboot(rebooted_once)
    assert rebooted_once.read(agents.find_digest_and_boot_id, HOST) == (
        None,
        'boot-2',
    )


def test_host_reboot_does_not_change_other_host(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    rebooted_once.write(agents.store_digest, 'compute-2', 'digest', 'boot-1')
    assert rebooted_once.write(recovery.record_host_reboot, 'compute-2', 'boot-2')
    assert read_states(rebooted_once, uuids) == [State.BOUND]


def test_heartbeat_new_boot_id_records_reboot(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    same_boot, next_boot = HeartbeatDetails('boot-1'), HeartbeatDetails('boot-2')
    record_heartbeat = services.record_agent_heartbeat
    assert not rebooted_once.write(record_heartbeat, HOST, '1.0', 'digest', same_boot)
    assert read_states(rebooted_once, uuids) == [State.BOUND]
    assert rebooted_once.write(record_heartbeat, HOST, '1.0', 'digest', next_boot)
    assert read_states(rebooted_once, uuids) == [State.PROVISIONING]


# --- results of the agent -----------------------------------------------------------


def test_recovery_before_reboot_record_is_stored(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    record_recovery(
        rebooted_once, [h.uuid for h in handles_by_arq(rebooted_once, uuids).values()]
    )
    assert read_states(rebooted_once, uuids) == [State.BOUND]
    assert list_nova_events(rebooted_once) == [(uuids, True)]
    assert not record_reboot(rebooted_once)


def test_recovery_again_changes_nothing(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    rebuilt = [handle.uuid for handle in handles_by_arq(rebooted_once, uuids).values()]
    record_recovery(rebooted_once, rebuilt)
    lease_jobs(rebooted_once)
    record_recovery(rebooted_once, rebuilt)
    assert list_nova_events(rebooted_once) == []


def test_recovery_lost_arq_fails_and_is_released(rebooted_once: Database) -> None:
    """The failure of an ARQ does not affect the others."""
    rebuilt, failed = uuids = create_bound_arqs(rebooted_once, 2)
    handles = handles_by_arq(rebooted_once, uuids)
    record_reboot(rebooted_once)
    reasons = {handles[failed].uuid: 'No such type.' + 'x' * 999}
    assert record_recovery(rebooted_once, [handles[rebuilt].uuid], reasons) == ()
    assert read_states(rebooted_once, uuids) == [State.BOUND, State.BIND_FAILED]
    jobs = lease_jobs(rebooted_once)
    assert sorted(
        (job.payload['arq_uuids'], job.payload['succeeded'])
        for job in jobs
        if job.type == OperationKind.NOVA_EVENT
    ) == sorted([([rebuilt], True), ([failed], False)])
    (release_job,) = (job for job in jobs if job.type == OperationKind.RELEASE)
    assert release_job.payload == {'handle_uuid': handles[failed].uuid}
    last = read_history(rebooted_once, failed)[-1]
    assert (last.step, last.actor) == ('BindFailed', 'agent')
    assert last.reason is not None
    assert last.reason.startswith('No such type.')
    assert rebooted_once.read(_reason, failed) == last.reason
    assert (
        rebooted_once.read(attach_handles.find_unclean_handle, handles[failed].uuid)
        is not None
    )


def _reason(session: Session, uuid: str) -> str | None:
    return session.scalar(select(Arq.status_reason).where(Arq.uuid == uuid))


def test_recovery_adds_connect_job_of_rebuilt_handles(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 3)
    plain, connecting, failed = uuids
    handles = handles_by_arq(rebooted_once, uuids)
    record_recovery(
        rebooted_once,
        [handles[plain].uuid, handles[connecting].uuid],
        {handles[failed].uuid: 'No such type.'},
        [handles[connecting].uuid, handles[failed].uuid],
    )
    (job,) = (
        job for job in lease_jobs(rebooted_once) if job.type == OperationKind.CONNECT
    )
    payload = read_payload(ConnectPayload, job.payload)
    assert payload.arq_uuids == (connecting,)
    assert payload.instance_uuid == handles[connecting].instance_uuid


def test_recovery_of_other_host_changes_nothing(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    record_reboot(rebooted_once)
    handle = handles_by_arq(rebooted_once, uuids)[uuids[0]].uuid
    result = RecoveryResult('compute-2', 'boot-2', (handle,), {})
    assert rebooted_once.write(recovery.record_recovery, result, LIMITS) == ()
    assert read_states(rebooted_once, uuids) == [State.PROVISIONING]


def test_recovery_deleted_arq_stays_deleting(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    record_reboot(rebooted_once)
    rebuilt = [handle.uuid for handle in handles_by_arq(rebooted_once, uuids).values()]
    rebooted_once.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    assert record_recovery(rebooted_once, rebuilt) == ()
    assert read_states(rebooted_once, uuids) == [State.DELETING]
    assert list_nova_events(rebooted_once) == []


def test_host_reboot_twice_keeps_provisioning(rebooted_once: Database) -> None:
    uuids = create_bound_arqs(rebooted_once, 1)
    record_reboot(rebooted_once)
    record_reboot(rebooted_once, 'boot-3')
    assert read_states(rebooted_once, uuids) == [State.PROVISIONING]
