# SPDX-License-Identifier: Apache-2.0
"""Histories of ARQs, which are deleted with them."""

from uuid import uuid4

from sqlalchemy import func, select

from cyborg_lite.db.arqs import arqs, binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ArqEvent
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import (
    ANY_PROJECT,
    BIND_JOB,
    BOUND_EVENT_JOB,
    FAILED_EVENT_JOB,
    confirm_all,
)
from tests.builders.rows import OWNER, add_arqs, add_card, bindings


def list_history(database: Database, uuid: str) -> list[tuple[str, str]]:
    return [
        (step.step, step.actor)
        for step in database.read(arqs.list_steps, uuid, ANY_PROJECT)
    ]


def test_list_steps_begins_with_creation(database: Database) -> None:
    (uuid,) = add_arqs(database, 1)
    assert list_history(database, uuid) == [('Initial', 'client')]
    (created,) = database.read(arqs.list_steps, uuid, ANY_PROJECT)
    (arq,) = database.read(
        arqs.list_arqs, Query(filters={'uuid': (uuid,)}), ANY_PROJECT
    )
    assert created.at == arq.created_at


def test_list_steps_of_host_bind_are_complete(database: Database) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2, needs_host=True)
    binding_by_arq = bindings(uuids, card)
    job = database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, BIND_JOB, OWNER
    )
    claimed = database.write(binding.claim_for_bind, job, uuids, None, BOUND_EVENT_JOB)
    database.write(
        binding.complete_bind,
        claimed.job,
        confirm_all(database, uuids),
        None,
        BOUND_EVENT_JOB,
    )
    database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
    for uuid in uuids:
        assert list_history(database, uuid) == [
            ('Initial', 'client'),
            ('BindStarted', 'client'),
            ('Claimed', 'conductor'),
            ('Bound', 'agent'),
            ('Unbound', 'client'),
        ]


def test_list_steps_failure_has_shortened_reason(database: Database) -> None:
    uuids = add_arqs(database, 1)
    binding_by_arq = bindings(uuids, str(uuid4()))
    job = database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, BIND_JOB, OWNER
    )
    database.write(
        binding.fail_bind, job, uuids, DriverError(reason='x' * 999), FAILED_EVENT_JOB
    )
    _, started, failed = database.read(arqs.list_steps, uuids[0], ANY_PROJECT)
    assert (started.reason, failed.step) == (None, 'BindFailed')
    assert failed.reason == 'x' * 255
    assert started.at <= failed.at


def test_delete_arqs_deletes_history(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    binding_by_arq = bindings(uuids, card)
    database.write(binding.accept_bind, binding_by_arq, ANY_PROJECT, BIND_JOB, OWNER)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    events = select(func.count()).select_from(ArqEvent)
    assert database.read(lambda session: session.scalar(events)) == 0
