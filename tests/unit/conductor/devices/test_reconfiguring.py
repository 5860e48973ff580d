# SPDX-License-Identifier: Apache-2.0
"""Tests of the job that changes the configuration of devices by playbooks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import select

from cyborg_lite.clients.playbooks import PlaybookOrder, PlaybookResult, PlaybookRunner
from cyborg_lite.conductor.devices.devices import HostPeers
from cyborg_lite.conductor.devices.reconfiguring import (
    ReconfigurationService,
    ReconfigureHandler,
)
from cyborg_lite.conductor.jobs.operations import OperationService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.errors.devices import (
    InvalidSettings,
    ReconfigurationDelayed,
    ReconfigurationRefused,
)
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.reconfiguration import (
    ConfigurationRequest,
    HardwareSet,
    HardwareSets,
    Phase,
    Reconfiguration,
    ReconfigurationState,
)
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.rpc.context import RequestContext, daemon_context
from tests.builders.changed_card import ChangedCard
from tests.builders.reports import HOST
from tests.builders.rows import OWNER
from tests.doubles.agents import ModeAgents

_CARD = ModeAgents.BEFORE
_SET = HardwareSet(
    'gpus',
    'setup.yml',
    'teardown.yml',
    {'host': (HOST,)},
    settings={'count': {'type': 'integer'}, 'name': {'type': 'string'}},
    variables={'family': 'gpu'},
    timeout=60,
)
_SETS = HardwareSets('/srv/ansible', 'hosts.yml', (_SET,))


@dataclass
class FakePlaybooks(PlaybookRunner):
    """Records orders, and answers them in their order; SUCCESS without an answer."""

    answers: list[PlaybookResult | Exception] = field(default_factory=list)
    orders: list[PlaybookOrder] = field(default_factory=list)

    def run(
        self, order: PlaybookOrder, confirm: Callable[[Sequence[str]], bool]
    ) -> PlaybookResult:
        self.orders.append(order)
        confirm(['Write the files: changed'])
        answer = self.answers.pop(0) if self.answers else PlaybookResult('successful')
        if isinstance(answer, Exception):
            raise answer
        return answer


class ScanningAgents(ModeAgents):
    """Agents whose scans return a digest, or raise an error."""

    digest = 'after'
    failure: HostAway | None = None

    def scan(self, context: RequestContext, host: str) -> str:
        if self.failure:
            raise self.failure
        return self.digest


class Cloud(ChangedCard):
    """The service and the handler, with a card of free handles."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, _CARD)
        self.playbooks, self.agents = FakePlaybooks(), ScanningAgents()
        self.service = ReconfigurationService(database, _SETS, lambda: None)
        self.handler = self.create_handler(_SETS)
        database.write(agents.store_digest, HOST, 'after', 'boot')

    def create_handler(self, sets: HardwareSets) -> ReconfigureHandler:
        return ReconfigureHandler(
            self.database,
            sets,
            self.playbooks,
            HostPeers(self.agents, self.placement, self.sync),
        )

    # Any: JSON values.
    def change(self, **settings: Any) -> Job:
        """Request a change; return its leased job."""
        uuid = self.device().uuid
        request = ConfigurationRequest('gpus', settings, 'joe')
        self.service.change(daemon_context(), uuid, request)
        return self.lease()

    def lease(self) -> Job:
        kinds = (OperationKind.CONFIGURATION,)
        (job,) = self.database.write(queue.lease_jobs, OWNER, 10, kinds)
        return job

    def repeat(self, job: Job) -> Job:
        """Postpone a job as the runner does; return it as leased again."""
        self.database.write(queue.pause_job, job, 0, self.read_step(job))
        return self.lease()

    def read_step(self, job: Job) -> str:
        step = select(JobRow.step).where(JobRow.uuid == job.uuid)
        return str(self.database.read(lambda s: s.scalar(step)))

    def last(self) -> Reconfiguration:
        return self.service.show(self.device().uuid).changes[0]

    def has_job(self) -> bool:
        uuid = self.device().uuid
        return self.database.read(
            queue.has_keyed_job, OperationKind.CONFIGURATION, uuid
        )


@pytest.fixture
def cloud(database: Database) -> Cloud:
    return Cloud(database)


def test_change_runs_teardown_then_setup_while_held(cloud: Cloud) -> None:
    cloud.handler.run(cloud.change(count=4))
    teardown, setup = cloud.playbooks.orders
    assert (teardown.playbook, setup.playbook) == ('teardown.yml', 'setup.yml')
    assert (setup.directory, setup.inventory) == ('/srv/ansible', 'hosts.yml')
    assert (setup.limit, setup.timeout) == (HOST, 60)
    assert setup.variables == {
        'family': 'gpu',
        'count': 4,
        'cyborg_lite_device_uuid': cloud.device().uuid,
        'cyborg_lite_device_address': _CARD.control_address,
    }
    assert cloud.synced == [DeviceStatus.MAINTAINING, DeviceStatus.ENABLED]
    assert (cloud.is_held(), cloud.has_job()) == (False, False)
    change = cloud.last()
    assert change.state is ReconfigurationState.SUCCEEDED
    assert (change.phase, change.tasks, change.actor) == (Phase.SETUP, 2, 'joe')
    assert change.log == (
        'teardown: Write the files: changed\nsetup: Write the files: changed'
    )
    assert change.finished_at is not None


def test_change_failed_playbook_leaves_device_maintaining(cloud: Cloud) -> None:
    cloud.playbooks.answers = [PlaybookResult('failed', 'Load: no such module')]
    cloud.handler.run(cloud.change())
    assert len(cloud.playbooks.orders) == 1
    device, change = cloud.device(), cloud.last()
    assert device.status is DeviceStatus.MAINTAINING
    reason = 'Playbook teardown failed: Load: no such module'
    assert device.status_reason == f'Configuration: {reason}'
    assert (change.state, change.reason) == (ReconfigurationState.FAILED, reason)
    assert (cloud.is_held(), cloud.has_job()) == (False, False)


def test_retry_of_failed_change_repeats_its_settings(cloud: Cloud) -> None:
    cloud.playbooks.answers = [PlaybookResult('failed', 'Load: no such module')]
    job = cloud.change(count=4, name='a')
    cloud.handler.run(job)
    restarts = {'configuration': cloud.service.restart}
    service = OperationService(cloud.database, lambda: None, restarts)
    (uuid,) = job.operations
    service.retry(RequestContext(user_id='eve', is_admin=True), uuid)
    next_job = cloud.lease()
    assert next_job.operations == (uuid,)
    cloud.handler.run(next_job)
    assert cloud.playbooks.orders[-1].variables['count'] == 4
    assert (cloud.last().state, cloud.last().actor) == ('succeeded', 'eve')
    operation = cloud.database.read(operations.read_operation, uuid)
    assert (operation.state, operation.reason) == ('succeeded', '')
    steps = [step['name'] for step in operation.steps]
    assert steps == ['teardown', 'setup', 'applied']


@pytest.mark.parametrize(
    ('digest', 'failure'), [('newer', None), ('after', HostAway(host=HOST))]
)
def test_change_waits_for_report_without_playbooks(
    cloud: Cloud, digest: str, failure: HostAway | None
) -> None:
    cloud.agents.digest, cloud.agents.failure = digest, failure
    job = cloud.change()
    with pytest.raises((ReconfigurationDelayed, HostAway)):
        cloud.handler.run(job)
    assert cloud.is_held()
    cloud.agents.digest, cloud.agents.failure = 'after', None
    cloud.handler.run(cloud.repeat(job))
    assert len(cloud.playbooks.orders) == 2
    assert cloud.last().state is ReconfigurationState.SUCCEEDED


def test_change_of_used_device_is_refused(cloud: Cloud) -> None:
    arq = cloud.claim_handle()
    with pytest.raises(ReconfigurationRefused, match=arq):
        cloud.change()
    configuration = cloud.service.show(cloud.device().uuid)
    assert (configuration.arqs, configuration.changes) == ((arq,), ())


def test_change_twice_is_refused(cloud: Cloud) -> None:
    cloud.change()
    with pytest.raises(ReconfigurationRefused, match='being changed already'):
        cloud.change()


def test_change_device_claimed_meanwhile_fails(cloud: Cloud) -> None:
    job = cloud.change()
    arq = cloud.claim_handle()
    cloud.handler.run(job)
    assert arq in cloud.last().reason
    assert cloud.device().status is DeviceStatus.ENABLED
    assert cloud.playbooks.orders == []


def test_change_with_allocation_fails_unchanged(cloud: Cloud) -> None:
    job = cloud.change()
    cloud.allocate()
    cloud.handler.run(job)
    assert 'Placement has allocations of it: instance' in cloud.last().reason
    assert cloud.device().status is DeviceStatus.ENABLED
    assert (cloud.playbooks.orders, cloud.is_held()) == ([], False)


def test_change_other_set_is_refused(cloud: Cloud) -> None:
    uuid, context = cloud.device().uuid, daemon_context()
    with pytest.raises(ReconfigurationRefused, match='Its sets: gpus'):
        cloud.service.change(context, uuid, ConfigurationRequest('fpgas', {}, 'joe'))


@pytest.mark.parametrize(
    'settings',
    [
        {'count': '4'},
        {'family': 'other'},
        {'name': '{{ 1 }}'},
        {'name': '../etc'},
        {'ansible_connection': 'local'},
    ],
)
# Any: JSON values.
def test_change_invalid_settings_are_refused(
    cloud: Cloud, settings: dict[str, Any]
) -> None:
    with pytest.raises(InvalidSettings):
        cloud.change(**settings)


def test_change_conductor_without_set_is_delayed(cloud: Cloud) -> None:
    job = cloud.change()
    with pytest.raises(ReconfigurationDelayed, match='no hardware set gpus'):
        cloud.create_handler(HardwareSets()).run(job)
    assert not cloud.is_held()


def test_expire_before_hold_offers_device(cloud: Cloud) -> None:
    cloud.handler.expire(cloud.change(), 'An operator cancelled the job.')
    assert cloud.last().reason == 'An operator cancelled the job.'
    assert cloud.device().status is DeviceStatus.ENABLED


def test_expire_during_playbook_leaves_device_maintaining(cloud: Cloud) -> None:
    cloud.playbooks.answers = [ReconfigurationDelayed(reason='died')]
    job = cloud.change()
    with pytest.raises(ReconfigurationDelayed):
        cloud.handler.run(job)
    cloud.handler.expire(job, 'The deadline passed.')
    assert cloud.device().status is DeviceStatus.MAINTAINING
    assert cloud.device().status_reason == 'Configuration: The deadline passed.'
    assert cloud.last().state is ReconfigurationState.FAILED
