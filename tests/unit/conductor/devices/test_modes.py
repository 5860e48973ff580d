# SPDX-License-Identifier: Apache-2.0
"""Tests of plans of modes, and of the job that changes a mode."""

from dataclasses import replace

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.devices.devices import HostPeers
from cyborg_lite.conductor.devices.modes import ModeHandler, ModeService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.errors.devices import DeviceNotFound, ModeRefused, ModeUnknown
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.modes import list_inventory
from cyborg_lite.model.jobs import Job, JobState
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.rpc.context import daemon_context
from tests.builders.changed_card import ChangedCard
from tests.builders.reports import HOST
from tests.builders.rows import OWNER
from tests.doubles.agents import ModeAgents

_BEFORE = ModeAgents.BEFORE


class Cloud(ChangedCard):
    """The service and the handler, with a card of four free handles."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, _BEFORE)
        self.agents = ModeAgents()
        self.service = ModeService(database, self.agents, lambda: None)
        peers = HostPeers(self.agents, self.placement, self.sync)
        self.handler = ModeHandler(database, peers)

    def change(self, mode: str = 'b') -> Job:
        """Request a change; return its leased job."""
        self.service.change(daemon_context(), self.device().uuid, mode)
        (job,) = self.database.write(queue.lease_jobs, OWNER, 10, (OperationKind.MODE,))
        return job

    def list_jobs(self) -> list[tuple[JobState, str]]:
        jobs = self.database.read(administration.list_jobs, (OperationKind.MODE,))
        return [(job.state, job.last_error) for job in jobs]


@pytest.fixture
def cloud(database: Database) -> Cloud:
    return Cloud(database)


def test_plan_has_difference_and_users(cloud: Cloud) -> None:
    arq = cloud.claim_handle()
    plan = cloud.service.plan(daemon_context(), cloud.device().uuid)
    assert (plan.current, plan.declared, plan.arqs) == ('a', 'b', (arq,))
    current, second = plan.plans
    assert (current.appears, current.vanishes) == ((), ())
    assert [item.traits for item in second.appears] == [
        ('CUSTOM_MODE_B', 'OWNER_CYBORG')
    ]
    assert second.vanishes == list_inventory(_BEFORE.root)


def test_change_sets_mode_while_device_is_held(cloud: Cloud) -> None:
    cloud.handler.run(cloud.change())
    assert [order.mode for order in cloud.agents.orders] == ['b']
    assert cloud.synced == [DeviceStatus.MAINTAINING, DeviceStatus.ENABLED]
    device = cloud.device()
    assert (device.status, device.status_reason) == (DeviceStatus.ENABLED, '')
    assert (cloud.list_jobs(), cloud.is_held()) == ([], False)


def test_change_of_lost_job_sends_no_order(cloud: Cloud, database: Database) -> None:
    """Another conductor has completed the change, and a later one may follow."""

    def take_over(host: str) -> None:
        stolen = update(JobRow).values(owner='other')
        database.write(lambda session: session.execute(stolen))

    peers = HostPeers(cloud.agents, cloud.placement, take_over)
    handler = ModeHandler(database, peers)
    with pytest.raises(JobLost):
        handler.run(cloud.change())
    assert cloud.agents.orders == []


def test_change_of_used_device_is_refused(cloud: Cloud) -> None:
    arq = cloud.claim_handle()
    with pytest.raises(ModeRefused, match=arq):
        cloud.change()
    assert cloud.list_jobs() == []


def test_change_to_unknown_mode_is_refused(cloud: Cloud) -> None:
    with pytest.raises(ModeRefused, match='Its modes: a, b'):
        cloud.change('c')


def test_change_device_claimed_meanwhile_fails(cloud: Cloud) -> None:
    job = cloud.change()
    arq = cloud.claim_handle()
    cloud.handler.run(job)
    ((state, error),) = cloud.list_jobs()
    assert (state, arq in error) == (JobState.FAILED, True)
    assert (cloud.agents.orders, cloud.is_held()) == ([], False)


def test_change_with_allocation_fails(cloud: Cloud) -> None:
    job = cloud.change()
    cloud.allocate()
    cloud.handler.run(job)
    ((_, error),) = cloud.list_jobs()
    assert 'Placement has allocations of it: instance' in error
    assert (cloud.agents.orders, cloud.is_held()) == ([], False)


def test_change_refused_by_agent_ends_hold(cloud: Cloud) -> None:
    cloud.agents.error = DriverError(reason='The tool refused.')
    cloud.handler.run(cloud.change())
    assert cloud.list_jobs() == [(JobState.FAILED, 'The tool refused.')]
    assert cloud.device().status is DeviceStatus.ENABLED
    assert not cloud.is_held()
    cloud.agents.error = None
    cloud.handler.run(cloud.change())
    assert cloud.list_jobs() == []


def test_change_with_unknown_result_stays_in_maintenance(cloud: Cloud) -> None:
    cloud.agents.error = ModeUnknown(address='0000:3b:00.0', reason='It broke.')
    cloud.handler.run(cloud.change())
    device = cloud.device()
    assert device.status is DeviceStatus.MAINTAINING
    assert 'It broke.' in device.status_reason
    assert not cloud.is_held()


def test_change_agent_away_keeps_hold(cloud: Cloud) -> None:
    cloud.agents.error = HostAway(host=HOST)
    job = cloud.change()
    with pytest.raises(HostAway):
        cloud.handler.run(job)
    assert cloud.is_held()
    cloud.agents.error = None
    cloud.handler.run(job)
    assert (cloud.list_jobs(), cloud.is_held()) == ([], False)


def test_change_expired_while_held_is_unknown(cloud: Cloud) -> None:
    cloud.agents.error = HostAway(host=HOST)
    job = cloud.change()
    with pytest.raises(HostAway):
        cloud.handler.run(job)
    cloud.handler.expire(replace(job, expired=True), 'The deadline passed.')
    assert cloud.list_jobs() == [(JobState.FAILED, 'The deadline passed.')]
    assert 'The deadline passed.' in cloud.device().status_reason
    assert not cloud.is_held()


def test_change_keeps_maintenance_of_operator(cloud: Cloud) -> None:
    cloud.set_maintaining('a new fan')
    cloud.handler.run(cloud.change())
    device = cloud.device()
    assert device.status is DeviceStatus.MAINTAINING
    assert device.status_reason == 'a new fan'


def test_plan_unknown_device_raises(cloud: Cloud) -> None:
    with pytest.raises(DeviceNotFound):
        cloud.service.plan(daemon_context(), 'nothing')
