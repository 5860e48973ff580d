# SPDX-License-Identifier: Apache-2.0
"""A bind is accepted whole, claims whole, and ends whole."""

from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import arqs, binding, handles, jobs, release
from cyborg_lite.db.change import change
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Arq, AttachHandle, Device
from cyborg_lite.db.tables import Job as JobRow
from cyborg_lite.exceptions import (
    ArqNotFound,
    ArqStateConflict,
    BindCancelled,
    HandlesContended,
    InstanceHasArqs,
    JobLost,
    NoFreeHandle,
)
from cyborg_lite.model.arqs import Binding, Scope
from cyborg_lite.model.jobs import Job, Kind, NewJob, Owner
from cyborg_lite.model.queries import Query
from tests.fakes.rows import (
    OWNER,
    PROJECT,
    add_arqs,
    add_card,
    bindings,
    owners,
    states,
)
from tests.fakes.statements import statements, transactions

EVERYBODY = Scope(project_id=None)
BIND = NewJob(Kind.BIND, limit_ms=60_000)
BOUND = NewJob(Kind.NOVA_EVENT, {'succeeded': True})
FAILED = NewJob(Kind.NOVA_EVENT, {'succeeded': False})


def accept(database: Database, wanted: dict[str, Binding]) -> Job:
    return database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)


def claim(database: Database, job: Job, uuids: list[str]) -> binding.Claimed:
    return database.write(binding.claim, job, uuids, None, BOUND)


def listed(database: Database, **filters: str) -> list[dict[str, object]]:
    query = Query(filters={name: (value,) for name, value in filters.items()})
    found = database.read(arqs.listed, query, EVERYBODY)
    return [{name: getattr(arq, name) for name in arq.__slots__} for arq in found]


def job_kinds(database: Database) -> list[str]:
    return database.read(_job_kinds)


def _job_kinds(session: Session) -> list[str]:
    return sorted(session.scalars(select(JobRow.kind)))


# --- acceptance ---------------------------------------------------------------------


def test_an_accepted_bind_is_stored_with_its_job(database: Database) -> None:
    uuids, card, instance = add_arqs(database, 2), add_card(database, 2), str(uuid4())
    accept(database, bindings(uuids, card, instance))
    shown = listed(database, instance_uuid=instance)
    assert [arq['uuid'] for arq in shown] == uuids
    assert {arq['state'] for arq in shown} == {'BindStarted'}
    assert {arq['device_rp_uuid'] for arq in shown} == {card}
    assert {arq['hostname'] for arq in shown} == {'compute-1'}
    assert job_kinds(database) == ['bind']


def test_each_request_keeps_the_provider_that_nova_chose_for_it(
    database: Database,
) -> None:
    uuids = add_arqs(database, 2)
    cards = [add_card(database, 1), add_card(database, 1)]
    instance = str(uuid4())
    wanted = {
        uuid: Binding('compute-1', card, instance)
        for uuid, card in zip(uuids, cards, strict=True)
    }
    claim(database, accept(database, wanted), uuids)
    assert [a['device_rp_uuid'] for a in listed(database)] == cards


def test_an_unknown_request_refuses_the_whole_bind(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 2)
    with pytest.raises(ArqNotFound):
        accept(database, bindings([*uuids, str(uuid4())], card))
    assert states(database, uuids) == ['Initial']
    assert job_kinds(database) == []


def test_a_request_of_another_project_does_not_exist(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    stranger = Scope(project_id='c' * 32, of_instances=True)
    with pytest.raises(ArqNotFound):
        database.write(binding.accept, bindings(uuids, card), stranger, BIND, OWNER)


def test_a_second_bind_of_the_same_request_is_refused(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 2)
    wanted = bindings(uuids, card)
    accept(database, wanted)
    with pytest.raises(ArqStateConflict):
        accept(database, wanted)
    assert job_kinds(database) == ['bind']


def test_an_instance_takes_one_set_of_requests(database: Database) -> None:
    card, instance = add_card(database, 4), str(uuid4())
    accept(database, bindings(add_arqs(database, 1), card, instance))
    second = add_arqs(database, 1)
    with pytest.raises(InstanceHasArqs, match=instance):
        accept(database, bindings(second, card, instance))
    assert states(database, second) == ['Initial']


def test_only_a_project_named_in_the_patch_replaces_the_creators(
    database: Database,
) -> None:
    card = add_card(database, 2)
    (kept,), (given,) = add_arqs(database, 1), add_arqs(database, 1)
    accept(database, bindings([kept], card))
    named = Binding('compute-1', card, str(uuid4()), project_id='d' * 32)
    accept(database, {given: named})
    projects = {arq['uuid']: arq['project_id'] for arq in listed(database)}
    assert projects == {kept: PROJECT, given: 'd' * 32}


# --- claims -------------------------------------------------------------------------


def test_passthrough_is_bound_by_the_claim_itself(database: Database) -> None:
    uuids, card = add_arqs(database, 3), add_card(database, 16)
    claimed = claim(database, accept(database, bindings(uuids, card)), uuids)
    assert claimed.handles == ()
    assert claimed.job.kind == Kind.NOVA_EVENT
    assert states(database, uuids) == ['Bound'] * 3
    assert owners(database) == sorted(uuids)
    assert job_kinds(database) == ['nova-event']
    shown = listed(database)
    assert {arq['attach_handle_type'] for arq in shown} == {'PCI'}
    assert len({arq['attach_handle_uuid'] for arq in shown}) == 3


def test_a_bind_of_eight_costs_two_transactions_and_eight_statements(
    database: Database,
) -> None:
    uuids, card = add_arqs(database, 8), add_card(database, 16)
    with statements(database) as sent, transactions(database) as ended:
        claim(database, accept(database, bindings(uuids, card)), uuids)
    assert len(sent) <= 10
    assert ended == ['commit', 'commit']
    assert states(database, uuids) == ['Bound'] * 8


def test_eight_whole_cards_cost_no_more_than_eight_handles_of_one(
    database: Database,
) -> None:
    uuids, instance = add_arqs(database, 8), str(uuid4())
    wanted = {u: Binding('compute-1', add_card(database, 1), instance) for u in uuids}
    with statements(database) as sent:
        claim(database, accept(database, wanted), uuids)
    assert len(sent) <= 10
    assert states(database, uuids) == ['Bound'] * 8


def test_a_handle_in_use_by_strangers_is_not_given_away(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1, missing=True)
    job = accept(database, bindings(uuids, card))
    with pytest.raises(NoFreeHandle):
        claim(database, job, uuids)


def test_too_few_handles_give_none(database: Database) -> None:
    uuids, card = add_arqs(database, 3), add_card(database, 2)
    job = accept(database, bindings(uuids, card))
    with pytest.raises(NoFreeHandle, match=card):
        claim(database, job, uuids)
    assert owners(database) == []


def test_an_unknown_provider_has_no_handle(database: Database) -> None:
    uuids = add_arqs(database, 1)
    job = accept(database, bindings(uuids, str(uuid4())))
    with pytest.raises(NoFreeHandle, match='No device of ours'):
        claim(database, job, uuids)


def test_a_device_that_is_gone_gives_nothing(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    database.write(lambda s: s.execute(update(Device).values(health='gone')))
    job = accept(database, bindings(uuids, card))
    with pytest.raises(NoFreeHandle, match='gone'):
        claim(database, job, uuids)


def test_a_claim_after_an_unbind_takes_nothing(database: Database) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2)
    job = accept(database, bindings(uuids, card))
    database.write(release.unbind, uuids[:1], EVERYBODY, None)
    with pytest.raises(BindCancelled):
        claim(database, job, uuids)
    assert owners(database) == []


def test_a_conductor_that_lost_the_job_claims_nothing(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    job = accept(database, bindings(uuids, card))
    database.write(lambda s: s.execute(update(JobRow).values(lease=9)))
    with pytest.raises(JobLost):
        claim(database, job, uuids)
    assert states(database, uuids) == ['BindStarted']
    assert owners(database) == []


def test_the_servers_owner_gets_the_requests(database: Database) -> None:
    """An admin's unshelve binds with the admin's token; the server is the tenant's."""
    uuids, card = add_arqs(database, 1, project='a' * 32), add_card(database, 1)
    job = accept(database, bindings(uuids, card))
    database.write(binding.claim, job, uuids, PROJECT, BOUND)
    assert [arq['project_id'] for arq in listed(database)] == [PROJECT]


# --- handles that their host prepares ------------------------------------------------


def test_what_its_host_must_prepare_is_claimed_but_not_bound(
    database: Database,
) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 4, needs_host=True)
    claimed = claim(database, accept(database, bindings(uuids, card)), uuids)
    assert sorted(handle.arq_uuid for handle in claimed.handles) == sorted(uuids)
    assert all(handle.preparing for handle in claimed.handles)
    assert states(database, uuids) == ['BindStarted'] * 2
    # Not shown before it is ready.
    assert {arq['attach_handle_uuid'] for arq in listed(database)} == {None}


def test_a_successor_finds_what_was_claimed(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1, needs_host=True)
    claim(database, accept(database, bindings(uuids, card)), uuids)
    database.write(lambda s: s.execute(update(JobRow).values(lease_until=0)))
    successor = Owner('conductor:2:2', 30_000)
    (job,) = database.write(jobs.take, successor, 1)
    assert job.step == binding.CLAIMED
    (handle,) = database.read(handles.held, uuids)
    assert handle.arq_uuid == uuids[0]


def test_prepared_handles_make_their_requests_bound(database: Database) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2, needs_host=True)
    claimed = claim(database, accept(database, bindings(uuids, card)), uuids)
    event = database.write(binding.succeed, claimed.job, uuids, None, BOUND)
    assert event.payload == {'succeeded': True}
    assert states(database, uuids) == ['Bound'] * 2
    assert not any(handle.preparing for handle in database.read(handles.held, uuids))


def test_a_bind_cancelled_while_its_host_prepares_is_not_bound(
    database: Database,
) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2, needs_host=True)
    claimed = claim(database, accept(database, bindings(uuids, card)), uuids)
    database.write(release.delete_listed, uuids[:1], EVERYBODY, True, None)
    # The bind still works on the handle on its host: no release may cross it there.
    assert job_kinds(database) == ['bind']
    with pytest.raises(BindCancelled):
        database.write(binding.succeed, claimed.job, uuids, None, BOUND)
    database.write(binding.fail, claimed.job, uuids, 'cancelled', FAILED)
    assert states(database, uuids) == ['Deleting', 'BindFailed']
    assert job_kinds(database) == ['nova-event', 'release', 'release']


# --- failure --------------------------------------------------------------------------


def test_a_failed_bind_gives_everything_back(database: Database) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2, needs_host=True)
    claimed = claim(database, accept(database, bindings(uuids, card)), uuids)
    event = database.write(binding.fail, claimed.job, uuids, 'no such type', FAILED)
    assert event is not None
    assert event.payload == {'succeeded': False}
    shown = listed(database)
    assert {arq['state'] for arq in shown} == {'BindFailed'}
    assert {arq['status_reason'] for arq in shown} == {'no such type'}
    # Their host may have prepared some: they are held until it has cleaned them.
    for job in database.write(jobs.take, OWNER, 10):
        handle = database.read(handles.to_clean, job.payload['handle'])
        assert handle is not None
        database.write(release.cleaned, job, handle)
    assert owners(database) == []
    assert job_kinds(database) == ['nova-event']


def test_a_bind_that_nobody_waits_for_sends_no_event(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    job = accept(database, bindings(uuids, card))
    database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    assert database.write(binding.fail, job, uuids, 'cancelled', FAILED) is None
    assert job_kinds(database) == []


def test_a_rebind_waits_until_its_old_device_is_clean(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 2, needs_host=True)
    first = claim(database, accept(database, bindings(uuids, card)), uuids)
    database.write(binding.succeed, first.job, uuids, None, BOUND)
    database.write(release.unbind, uuids, EVERYBODY, None)
    assert states(database, uuids) == ['Unbound']
    again = accept(database, bindings(uuids, card))
    with pytest.raises(HandlesContended):
        claim(database, again, uuids)


def test_a_request_loses_nothing_by_a_shortened_reason(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    job = accept(database, bindings(uuids, card))
    database.write(binding.fail, job, uuids, 'x' * 5000, FAILED)
    assert database.read(
        lambda s: s.scalar(select(Arq.status_reason).where(Arq.uuid == uuids[0]))
    ) == ('x' * 255)


def test_each_claim_is_another_turn_of_the_handle(database: Database) -> None:
    """By which its host tells orders that are out of date."""
    card = add_card(database, 1, needs_host=True)
    (uuid,) = add_arqs(database, 1)
    turns = []
    for _ in range(2):
        wanted = bindings([uuid], card, str(uuid4()))
        (held,) = claim(database, accept(database, wanted), [uuid]).handles
        turns.append(held.turn)
        database.write(_free, held.uuid)
        database.write(release.unbind, [uuid], EVERYBODY, None)
    assert turns == [1, 2]


def _free(session: Session, handle: str) -> None:
    free = {'arq_uuid': None, 'preparing': False}
    change(session, update(AttachHandle).where(AttachHandle.uuid == handle), free)


def test_a_project_that_is_named_for_one_changes_no_other(database: Database) -> None:
    card = add_card(database, 2)
    one, other = add_arqs(database, 2)
    wanted = bindings([one, other], card, str(uuid4()))
    wanted[one] = replace(wanted[one], project_id='theirs')
    accept(database, wanted)
    shown = {arq['uuid']: arq['project_id'] for arq in listed(database)}
    assert shown == {one: 'theirs', other: PROJECT}
