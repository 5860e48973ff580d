# SPDX-License-Identifier: Apache-2.0
"""What is released is free, or held until its host has cleaned it; never both."""

from uuid import uuid4

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cyborg_lite.db import binding, handles, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Arq, Deployable
from cyborg_lite.exceptions import (
    ArqNotFound,
    ArqStateConflict,
    ServiceTokenRequired,
)
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Job, Kind, NewJob
from tests.fakes.rows import OWNER, add_arqs, add_card, bindings, owners, states
from tests.fakes.statements import statements

EVERYBODY = Scope(project_id=None)
TENANT = Scope(project_id='b' * 32)
STRANGER = Scope(project_id='c' * 32)
NOVA_FOR_STRANGER = Scope(project_id='c' * 32, of_instances=True)


def bound(
    database: Database, number: int, *, needs_host: bool = False
) -> tuple[list[str], str]:
    """Bound requests of one new instance: their uuids and its own."""
    uuids, instance = add_arqs(database, number), str(uuid4())
    card = add_card(database, number, needs_host=needs_host)
    wanted = bindings(uuids, card, instance)
    job = database.write(binding.accept, wanted, EVERYBODY, NewJob(Kind.BIND), OWNER)
    told = NewJob(Kind.NOVA_EVENT)
    claimed = database.write(binding.claim, job, uuids, None, told)
    if claimed.handles:
        event = database.write(binding.succeed, claimed.job, uuids, None, told)
    else:
        event = claimed.job
    database.write(jobs.finish, event)
    return uuids, instance


def release_jobs(database: Database) -> list[Job]:
    taken = database.write(jobs.take, OWNER, 10)
    return [job for job in taken if job.kind == Kind.RELEASE]


def kinds(database: Database) -> list[str]:
    return sorted(one.kind for one in database.read(jobs.count))


def number_of_arqs(database: Database) -> int:
    return database.read(_count)


def _count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(Arq)) or 0


# --- unbind ---------------------------------------------------------------------------


def test_an_unbound_request_holds_nothing_and_can_be_bound_again(
    database: Database,
) -> None:
    uuids, instance = bound(database, 2)
    database.write(release.unbind, uuids, EVERYBODY, None)
    assert states(database, uuids) == ['Unbound'] * 2
    assert owners(database) == []
    wanted = bindings(uuids, add_card(database, 2), instance)
    database.write(binding.accept, wanted, EVERYBODY, NewJob(Kind.BIND), OWNER)


def test_unbinding_what_was_never_bound_changes_nothing(database: Database) -> None:
    uuids = add_arqs(database, 1)
    database.write(release.unbind, uuids, EVERYBODY, None)
    assert states(database, uuids) == ['Initial']


def test_unbinding_an_unknown_request_changes_none(database: Database) -> None:
    uuids, _ = bound(database, 1)
    with pytest.raises(ArqNotFound):
        database.write(release.unbind, [*uuids, str(uuid4())], EVERYBODY, None)
    assert states(database, uuids) == ['Bound']
    assert owners(database) == uuids


def test_unbinding_a_request_that_is_being_deleted_is_refused(
    database: Database,
) -> None:
    uuids, _ = bound(database, 1, needs_host=True)
    database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    with pytest.raises(ArqStateConflict):
        database.write(release.unbind, uuids, EVERYBODY, None)


def test_an_unbound_request_keeps_its_handle_until_it_is_clean(
    database: Database,
) -> None:
    uuids, _ = bound(database, 1, needs_host=True)
    database.write(release.unbind, uuids, EVERYBODY, 'req-7')
    assert states(database, uuids) == ['Unbound']
    assert owners(database) == uuids
    (job,) = release_jobs(database)
    assert job.request_id == 'req-7'
    handle = database.read(handles.to_clean, job.payload['handle'])
    assert handle is not None
    database.write(release.cleaned, job, handle)
    assert owners(database) == []
    assert states(database, uuids) == ['Unbound']


def test_a_release_that_fails_shows_and_ends_well_at_last(database: Database) -> None:
    uuids, _ = bound(database, 1, needs_host=True)
    database.write(release.unbind, uuids, EVERYBODY, None)
    (job,) = release_jobs(database)
    handle = database.read(handles.to_clean, job.payload['handle'])
    assert handle is not None
    database.write(release.not_cleaned, handle, 'the guest holds it')
    assert states(database, uuids) == ['UnbindFailed']
    assert owners(database) == uuids
    database.write(release.cleaned, job, handle)
    assert states(database, uuids) == ['Unbound']
    assert owners(database) == []


# --- delete ---------------------------------------------------------------------------


def test_deleted_requests_are_gone_and_their_handles_free(database: Database) -> None:
    uuids, _ = bound(database, 3)
    missing = database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    assert missing == ()
    assert states(database, uuids) == []
    assert owners(database) == []


def test_those_that_exist_are_deleted_and_the_others_named(database: Database) -> None:
    (known,), unknown = add_arqs(database, 1), str(uuid4())
    wanted = [unknown, known]
    missing = database.write(release.delete_listed, wanted, TENANT, False, None)
    assert missing == (unknown,)
    assert states(database, [known]) == []


def test_a_bound_request_is_deleted_only_by_a_service(database: Database) -> None:
    uuids, _ = bound(database, 1)
    free = add_arqs(database, 1)
    with pytest.raises(ServiceTokenRequired):
        database.write(release.delete_listed, free + uuids, TENANT, False, None)
    assert states(database, free + uuids) == ['Initial', 'Bound']


def test_a_stranger_deletes_nothing(database: Database) -> None:
    uuids = add_arqs(database, 1)
    missing = database.write(release.delete_listed, uuids, STRANGER, False, None)
    assert missing == tuple(uuids)
    assert states(database, uuids) == ['Initial']


def test_nova_deletes_what_an_instance_has_in_whatever_project(
    database: Database,
) -> None:
    uuids, instance = bound(database, 2)
    scope = NOVA_FOR_STRANGER
    database.write(release.delete_of_instance, instance, scope, None)
    assert states(database, uuids) == []


def test_deleting_by_instance_again_is_fine(database: Database) -> None:
    _, instance = bound(database, 1)
    for _ in range(2):
        database.write(release.delete_of_instance, instance, EVERYBODY, None)
    assert number_of_arqs(database) == 0


def test_of_two_who_delete_what_a_host_cleans_one_has_done_it(
    database: Database,
) -> None:
    uuids, _ = bound(database, 2, needs_host=True)
    calls = [
        database.write(release.delete_listed, uuids, EVERYBODY, True, None)
        for _ in range(2)
    ]
    assert calls == [(), tuple(sorted(uuids))]
    assert len(release_jobs(database)) == 2


def test_a_deleted_request_stays_until_its_host_has_cleaned_up(
    database: Database,
) -> None:
    uuids, instance = bound(database, 1, needs_host=True)
    database.write(release.delete_of_instance, instance, EVERYBODY, None)
    assert states(database, uuids) == ['Deleting']
    assert owners(database) == uuids
    (job,) = release_jobs(database)
    handle = database.read(handles.to_clean, job.payload['handle'])
    assert handle is not None
    database.write(release.not_cleaned, handle, 'the host is away')
    assert states(database, uuids) == ['Deleting']
    # Meanwhile nobody is to be scheduled onto it.
    assert kinds(database) == ['placement-sync', 'release']
    database.write(release.cleaned, job, handle)
    assert states(database, uuids) == []
    assert owners(database) == []


def test_an_instance_gets_new_requests_while_its_old_ones_are_cleaned(
    database: Database,
) -> None:
    """An evacuation: the old host is away, and stays away."""
    _, instance = bound(database, 1, needs_host=True)
    database.write(release.delete_of_instance, instance, EVERYBODY, None)
    wanted = bindings(add_arqs(database, 1), add_card(database, 1), instance)
    database.write(binding.accept, wanted, EVERYBODY, NewJob(Kind.BIND), OWNER)


def test_deleting_twice_while_it_is_cleaned_calls_for_one_release(
    database: Database,
) -> None:
    uuids, _ = bound(database, 1, needs_host=True)
    for _ in range(2):
        database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    assert len(release_jobs(database)) == 1


def test_a_release_of_what_is_released_has_nothing_to_do(database: Database) -> None:
    """A second run of the job must not take the handle from its next owner."""
    uuids, _ = bound(database, 1, needs_host=True)
    database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    (job,) = release_jobs(database)
    handle = database.read(handles.to_clean, job.payload['handle'])
    assert handle is not None
    database.write(release.cleaned, job, handle)
    assert database.read(handles.to_clean, job.payload['handle']) is None


def test_a_delete_costs_the_same_for_one_and_for_eight(database: Database) -> None:
    one, eight = bound(database, 1), bound(database, 8)
    counts = []
    for _, instance in (one, eight):
        with statements(database) as sent:
            database.write(release.delete_of_instance, instance, EVERYBODY, None)
        counts.append(len(sent))
    assert counts[0] == counts[1] <= 5


def test_a_release_called_for_twice_serves_the_next_owner_too(
    database: Database,
) -> None:
    """The second call makes the job run again; by then another may hold the handle."""
    uuids, _ = bound(database, 1, needs_host=True)
    database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    (job,) = release_jobs(database)
    database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    handle = database.read(handles.to_clean, job.payload['handle'])
    assert handle is not None
    database.write(release.cleaned, job, handle)
    (again,) = release_jobs(database)

    (rp_uuid,) = database.read(lambda s: s.scalars(select(Deployable.rp_uuid)).all())
    assert rp_uuid is not None
    following, told = add_arqs(database, 1), NewJob(Kind.NOVA_EVENT)
    wanted = bindings(following, rp_uuid)
    bind = database.write(binding.accept, wanted, EVERYBODY, NewJob(Kind.BIND), OWNER)
    claimed = database.write(binding.claim, bind, following, None, told)
    database.write(binding.succeed, claimed.job, following, None, told)
    assert database.read(handles.to_clean, again.payload['handle']) is None
    database.write(release.delete_listed, following, EVERYBODY, True, None)
    handle = database.read(handles.to_clean, again.payload['handle'])
    assert handle is not None
    assert handle.arq_uuid == following[0]
