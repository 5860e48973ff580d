# SPDX-License-Identifier: Apache-2.0
"""The bind job from BindStarted to the Nova event, with interruptions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.arqs.binding import BindHandler, build_bind_job
from cyborg_lite.conductor.jobs.runner import Handler, JobAttempts
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.arqs import arqs, binding, history, release
from cyborg_lite.db.core.clock import now_ms
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle
from cyborg_lite.db.core.tables import DeviceProfile as ProfileRow
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.arqs import HandlesContended, HandlesNotConfirmed
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.arqs.arqs import Arq, Binding, Scope
from cyborg_lite.model.devices.cleaning import CleanState
from cyborg_lite.model.jobs import Job, Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.profiles.device_profiles import Group, ProfileChange
from cyborg_lite.model.profiles.selector_grammar import parse_selector
from cyborg_lite.model.queries import Query
from tests.builders.bind_rules import RULES
from tests.builders.binds import Bind
from tests.builders.provider_rows import change_deployable
from tests.builders.rows import HOST, OWNER, PROJECT, add_card, add_profile, owners
from tests.builders.service_rows import mark_down
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers
from tests.doubles.job_handlers import ScriptedHandler

EVERYBODY = Scope(project_id=None)


def take_over(database: Database) -> Job:
    """Lease the job as another conductor after its lease has ended."""
    database.write(
        lambda session: session.execute(update(JobRow).values(lease_until=0))
    )
    (job,) = database.write(queue.lease_jobs, Owner('conductor:2:2', 30_000), 1)
    return job


def test_bind_passthrough_does_not_call_agent(database: Database) -> None:
    bind = Bind(database)
    event = bind.handler.run(bind.accept())
    assert event is not None
    assert event.type == OperationKind.NOVA_EVENT
    assert event.payload == {
        'instance_uuid': bind.instance,
        'arq_uuids': sorted(bind.uuids),
        'succeeded': True,
        'generation': 1,
    }
    assert bind.states == ['Bound', 'Bound']
    assert bind.agents.calls == []


def test_bind_observes_stages(database: Database) -> None:
    bind = Bind(database, needs_host=True)
    metrics = Metrics()
    handler = bind.handler.observe_stages(metrics.time_stage)
    handler.run(bind.accept())
    text = metrics.format_text()
    for stage in ('allocation', 'claim', 'load', 'prepare'):
        name = f'cyborg_lite_bind_stage_seconds_count{{stage="{stage}"}}'
        assert f'{name} 1.0' in text


def test_bind_prepares_host_in_one_call(database: Database) -> None:
    bind = Bind(database, number=4, needs_host=True)
    event = bind.handler.run(bind.accept())
    assert event is not None
    assert bind.agents.calls == [('prepare', 'compute-1', 4)]
    assert bind.states == ['Bound'] * 4
    assert len(bind.agents.prepared) == 4


def test_bind_unconfirmed_handle_is_prepared_again(database: Database) -> None:
    """The agent has released it meanwhile."""
    bind = Bind(database, needs_host=True)
    bind.agents.change_answer = lambda confirmed: list(confirmed)[1:]
    with pytest.raises(HandlesNotConfirmed):
        bind.handler.run(bind.accept())
    assert bind.states == ['BindStarted', 'BindStarted']
    bind.agents.change_answer = tuple
    bind.handler.run(take_over(database))
    assert bind.states == ['Bound', 'Bound']


def test_bind_agent_error_fails_all_arqs(database: Database) -> None:
    bind = Bind(database, needs_host=True)
    bind.agents.refusal = DriverError(reason='No instance of nvidia-231 is left.')
    event = bind.handler.run(bind.accept())
    assert event is not None
    assert event.payload['succeeded'] is False
    assert {arq.status_reason for arq in bind.arqs} == {
        'No instance of nvidia-231 is left.'
    }
    assert bind.states == ['BindFailed'] * 2


def test_bind_agent_error_of_any_text_is_stored(database: Database) -> None:
    """A driver may pass on what a tool has written; no database stores a surrogate."""
    bind = Bind(database, number=1, needs_host=True)
    bind.agents.refusal = DriverError(reason='Status \udc80.')
    assert bind.handler.run(bind.accept()) is not None
    assert [arq.status_reason for arq in bind.arqs] == ['Status ?.']


def test_bind_agent_unreachable_is_retried(database: Database) -> None:
    bind = Bind(database, needs_host=True)
    bind.agents.down_hosts = {'compute-1'}
    job = bind.accept()
    with pytest.raises(HostAway):
        bind.handler.run(job)
    assert bind.states == ['BindStarted'] * 2
    bind.agents.down_hosts = set()
    assert bind.handler.run(take_over(database)) is not None
    assert bind.states == ['Bound'] * 2


def test_bind_expired_fails_and_releases(database: Database) -> None:
    bind = Bind(database)
    event = bind.handler.expire(bind.accept(), 'Placement does not answer.')
    assert event is not None
    assert event.payload['succeeded'] is False
    assert bind.states == ['BindFailed'] * 2
    assert owners(database) == []
    (reason,) = {arq.status_reason for arq in bind.arqs}
    assert reason is not None
    assert 'Placement does not answer.' in reason


def test_bind_without_allocation_fails(database: Database) -> None:
    bind = Bind(database)
    event = bind.handler.run(bind.accept(allocated=False))
    assert event is not None
    assert event.payload['succeeded'] is False
    assert bind.states == ['BindFailed'] * 2
    assert owners(database) == []


def test_bind_allocation_on_other_provider_fails(database: Database) -> None:
    bind = Bind(database)
    job = bind.accept(allocated=False)
    bind.consumers.allocate(bind.instance, [str(uuid4())], PROJECT)
    bind.handler.run(job)
    assert bind.states == ['BindFailed'] * 2


def test_bind_allocation_not_required_succeeds(database: Database) -> None:
    bind = Bind(database, rules=replace(RULES, require_allocation=False))
    bind.handler.run(bind.accept(allocated=False))
    assert bind.states == ['Bound'] * 2


def test_bind_refuses_provider_that_others_use(database: Database) -> None:
    """The database shows a handle as free that a guest uses."""
    bind = Bind(database)
    job = bind.accept()
    card = bind.arqs[0].device_rp_uuid
    bind.consumers.allocate(str(uuid4()), [card or ''], PROJECT)
    event = bind.handler.run(job)
    assert event is not None
    assert event.payload['succeeded'] is False
    assert bind.states == ['BindFailed'] * 2
    assert 'Other consumers have allocated 1 of the 2 units' in str(
        bind.arqs[0].status_reason
    )
    assert owners(database) == []


def test_bind_without_allocation_leaves_units_of_others(database: Database) -> None:
    rules = replace(RULES, require_allocation=False)
    bind = Bind(database, number=1, rules=rules)
    job = bind.accept(allocated=False)
    card = bind.arqs[0].device_rp_uuid
    bind.consumers.allocate(str(uuid4()), [card or ''], PROJECT)
    bind.handler.run(job)
    assert bind.states == ['BindFailed']


def test_bind_placement_down_raises(database: Database) -> None:
    bind = Bind(database)
    bind.consumers.is_down = True
    job = bind.accept()
    with pytest.raises(ServiceUnavailable):
        bind.handler.run(job)
    assert bind.states == ['BindStarted'] * 2


def test_bind_takes_project_from_placement(database: Database) -> None:
    bind = Bind(database)
    job = bind.accept()
    (card,) = job.payload['provider_uuids']
    bind.consumers.allocate(bind.instance, [card] * 2, 'e' * 32)
    bind.handler.run(job)
    assert {arq.project_id for arq in bind.arqs} == {'e' * 32}


def test_bind_project_of_admin_is_kept(database: Database) -> None:
    bind = Bind(database)
    bind.handler.run(bind.accept(project='f' * 32))
    assert {arq.project_id for arq in bind.arqs} == {'f' * 32}


def test_bind_cancelled_does_not_call_agent_again(database: Database) -> None:
    bind = Bind(database, needs_host=True)
    bind.agents.down_hosts = {'compute-1'}
    with pytest.raises(HostAway):
        bind.handler.run(bind.accept())
    database.write(release.delete_arqs_of_instance, bind.instance, EVERYBODY, None)
    assert bind.handler.run(take_over(database)) is None
    assert bind.agents.calls == [('prepare', 'compute-1', 2)]
    released = database.write(queue.lease_jobs, OWNER, 10)
    assert [job.type for job in released] == [OperationKind.RELEASE] * 2


def test_bind_of_deleted_arqs_names_silent_host_once(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    bind = Bind(database, number=1, needs_host=True)
    bind.agents.down_hosts = {'compute-1'}
    attempts = JobAttempts(database, {OperationKind.BIND: bind.handler}, Metrics())
    attempts.run(bind.accept())
    database.write(lambda session: session.execute(update(JobRow).values(run_after=0)))
    (job,) = database.write(queue.lease_jobs, OWNER, 1)
    attempts.run(job)
    steps = database.read(history.list_steps, bind.uuids[0], EVERYBODY)
    (delay,) = [step for step in steps if step.step == 'BindDelayed']
    assert 'compute-1' in (delay.reason or '')
    database.write(release.delete_arqs_of_instance, bind.instance, EVERYBODY, None)
    database.write(lambda session: session.execute(update(JobRow).values(run_after=0)))
    jobs = database.write(queue.lease_jobs, OWNER, 10)
    attempts.run(next(job for job in jobs if job.type == OperationKind.BIND))
    warnings = [
        record.getMessage()
        for record in caplog.records
        if record.levelname == 'WARNING'
    ]
    assert len(warnings) == 2
    assert all(warning.count('compute-1') == 1 for warning in warnings)
    assert f'{bind.instance} postponed' in warnings[0]
    assert 'unbound or deleted during the bind. Before that: ' in warnings[1]


def test_overdue_bind_names_silent_host(database: Database) -> None:
    """A conductor may lease the job only after its deadline."""
    bind = Bind(database, number=1, needs_host=True)
    bind.agents.down_hosts = {'compute-1'}
    event = Mock(run=Mock(return_value=None))
    handlers: dict[str, Handler] = {
        OperationKind.BIND: bind.handler,
        OperationKind.NOVA_EVENT: event,
    }
    attempts = JobAttempts(database, handlers, Metrics())
    attempts.run(bind.accept())
    past = update(JobRow).values(run_after=0, deadline=1)
    database.write(lambda session: session.execute(past))
    (job,) = database.write(queue.lease_jobs, OWNER, 1)
    attempts.run(job)
    assert bind.states == ['BindFailed']
    steps = database.read(history.list_steps, bind.uuids[0], EVERYBODY)
    assert 'The agent of host compute-1 does not answer' in (steps[0].reason or '')


def test_bind_agent_down_does_not_call_agent(database: Database) -> None:
    bind = Bind(database, needs_host=True)
    job = bind.accept()
    mark_down(database, 'compute-1')
    with pytest.raises(HostAway):
        bind.handler.run(job)
    assert bind.agents.calls == []
    assert bind.states == ['BindStarted'] * 2


def test_bind_handles_contended_retries_five_times(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind = Bind(database)
    job = bind.accept()
    tries = []

    def raise_contended(*_: object) -> None:
        tries.append(1)
        raise HandlesContended()

    monkeypatch.setattr(
        'cyborg_lite.conductor.arqs.binding.binding.claim_for_bind', raise_contended
    )
    monkeypatch.setattr('cyborg_lite.conductor.arqs.binding.time.sleep', lambda _: None)
    with pytest.raises(HandlesContended):
        bind.handler.run(job)
    assert len(tries) == 5


def test_bind_of_dirty_unit_fails_with_reason(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('cyborg_lite.conductor.arqs.binding.time.sleep', lambda _: None)
    bind = Bind(database, number=1)
    job = bind.accept()
    dirty = update(AttachHandle).values(clean_state=CleanState.DIRTY)
    database.write(lambda session: session.execute(dirty))
    handlers: dict[str, Handler] = {
        OperationKind.BIND: bind.handler,
        OperationKind.NOVA_EVENT: ScriptedHandler(database),
    }
    attempts = JobAttempts(database, handlers, Metrics())
    attempts.run(job)
    assert bind.states == ['BindStarted']

    due = update(JobRow).values(run_after=0, attempts=16)
    database.write(lambda session: session.execute(due))
    (last,) = database.write(queue.lease_jobs, OWNER, 1)
    ending = update(JobRow).values(deadline=now_ms() - 1)
    database.write(lambda session: session.execute(ending))
    attempts.run(last)
    assert bind.states == ['BindFailed']
    (arq,) = bind.arqs
    assert arq.status_reason is not None
    assert 'is still cleaning: 1.' in arq.status_reason


# --- what a bind claims is what Nova has scheduled ---


@dataclass
class Scheduled:
    """An instance that Nova has scheduled by a group of a device profile."""

    database: Database
    group: dict[str, str]
    units: int = 1  # allocated
    edits: Sequence[dict[str, str]] = ()  # later groups, before the ARQs are created
    edit_age: int = 0  # seconds since the last edit
    host: str = HOST
    consumers: FakeConsumers = field(default_factory=FakeConsumers)

    def bind(self, card: str) -> Arq:
        """Create the ARQs and bind them to a card; return the first one."""
        name = add_profile(self.database, [self.group])
        for edited in self.edits:
            (profile,) = self.database.read(
                profiles.list_profiles, Query(filters={'name': (name,)})
            )
            change = ProfileChange(groups=(edited,), fields=('groups',))
            self.database.write(profiles.update_profile, profile.uuid, change)
        edited_at = datetime.now(UTC) - timedelta(seconds=self.edit_age)
        aged = update(ProfileRow).values(groups_changed_at=edited_at)
        if self.edits:
            self.database.write(lambda session: session.execute(aged))
        created = self.database.write(arqs.create_arqs, name, PROJECT)
        instance = str(uuid4())
        (name,) = Group.parse(self.group).requirements.resource_classes
        self.consumers.allocate(instance, [card] * self.units, PROJECT, name)
        requested = {arq.uuid: Binding(self.host, card, instance) for arq in created}
        new_job = build_bind_job(requested, RULES, 'req-1')
        job = self.database.write(
            binding.accept_bind, requested, EVERYBODY, new_job, OWNER
        )
        agents = FakeAgents()
        BindHandler(self.database, agents, self.consumers, RULES).run(job)
        query = Query(filters={'uuid': (created[0].uuid,)})
        (stored,) = self.database.read(arqs.list_arqs, query, EVERYBODY)
        assert (stored.state == 'Bound') == (stored.uuid in owners(self.database))
        return stored


GPU = {'resources:PGPU': '1'}


def needs(trait: str) -> dict[str, str]:
    return {**GPU, f'trait:{trait}': 'required'}


@pytest.mark.parametrize(
    ('group', 'edits', 'age', 'bound_by'),
    [
        (needs('CUSTOM_B'), [needs('CUSTOM_A')], 200, needs('CUSTOM_B')),
        (needs('CUSTOM_B'), [needs('CUSTOM_A')], 400, 'lacks CUSTOM_A'),
        (needs('CUSTOM_A'), [GPU], 0, GPU),
        ({'resources:PGPU': '2'}, [GPU], 0, 'request 1 of 2 units'),
        ({'resources:PGPU': '2'}, [GPU, needs('CUSTOM_B')], 0, 'request 1 of 2 units'),
        ({'resources:PGPU': '2'}, [GPU], 400, GPU),
    ],
)
def test_bind_after_edit_has_groups_of_scheduling(
    database: Database,
    group: dict[str, str],
    edits: Sequence[dict[str, str]],
    age: int,
    bound_by: str | dict[str, str],
) -> None:
    """Nova schedules by the profile, and creates the ARQs some time later."""
    card = add_card(database, 2, group=needs('CUSTOM_B'))
    units = int(group['resources:PGPU'])
    scheduled = Scheduled(database, group, units, edits=edits, edit_age=age)
    scheduled.consumers.traits[card] = frozenset({'CUSTOM_B'})
    arq = scheduled.bind(card)
    if isinstance(bound_by, str):
        assert bound_by in (arq.status_reason or '')
    else:
        assert (arq.state, arq.device_profile_group) == ('Bound', bound_by)


LARGE = f'trait:{parse_selector("device.memory_mib >= 8192MiB").trait}'


@pytest.mark.parametrize(
    ('group', 'code', 'reason'),
    [
        ({'resources:PGPU': '2'}, 'allocation_too_small', 'has 1 allocated'),
        ({'resources:VGPU': '1'}, 'provider_mismatch', 'class is PGPU, not VGPU'),
        ({**GPU, 'trait:CUSTOM_A': 'required'}, 'provider_mismatch', 'lacks CUSTOM_A'),
        ({**GPU, 'trait:CUSTOM_B': 'forbidden'}, 'provider_mismatch', 'has CUSTOM_B'),
        (
            {**GPU, 'accel:memory': '8192MiB', LARGE: 'required'},
            'provider_mismatch',
            'lacks CUSTOM_CYBORG_SEL_',
        ),
    ],
)
def test_bind_other_than_scheduled_fails(
    database: Database, group: dict[str, str], code: str, reason: str
) -> None:
    """The profile was edited, or the card has changed, after Nova had scheduled."""
    card = add_card(database, 2, group={**GPU, 'trait:CUSTOM_B': 'required'})
    arq = Scheduled(database, group).bind(card)
    assert (arq.state, arq.error_code) == ('BindFailed', f'cyborg_lite.arq.{code}')
    assert reason in (arq.status_reason or '')


def test_bind_to_another_host_fails(database: Database) -> None:
    card = add_card(database, 1)
    arq = Scheduled(database, GPU, host='compute-9').bind(card)
    assert (arq.state, arq.error_code) == (
        'BindFailed',
        'cyborg_lite.arq.host_mismatch',
    )
    assert Scheduled(database, GPU, host=HOST.upper()).bind(card).state == 'Bound'


def test_bind_selector_of_card_is_compared(database: Database) -> None:
    group = {**GPU, 'accel:memory': '8192MiB', LARGE: 'required'}
    card = add_card(database, 2)
    memory = {'name': 'memory_mib', 'type': 'integer', 'value': '16384', 'unit': 'MiB'}
    change_deployable(database, card, typed_attributes=[memory])
    assert Scheduled(database, group).bind(card).state == 'Bound'
    change_deployable(database, card, typed_attributes=[{**memory, 'value': '4096'}])
    assert Scheduled(database, group).bind(card).state == 'BindFailed'
