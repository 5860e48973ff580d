# SPDX-License-Identifier: Apache-2.0
"""The life of a request can be read afterwards, and goes with the request."""

from uuid import uuid4

from sqlalchemy import func, select

from cyborg_lite.db import arqs, binding, history, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import ArqEvent
from cyborg_lite.model.queries import Query
from tests.fakes.rows import OWNER, add_arqs, add_card, bindings
from tests.unit.db.test_binding import BIND, BOUND, EVERYBODY, FAILED


def life(database: Database, uuid: str) -> list[tuple[str, str]]:
    return [(s.step, s.actor) for s in database.read(history.steps, uuid, EVERYBODY)]


def test_the_history_of_a_request_begins_with_its_creation(database: Database) -> None:
    (uuid,) = add_arqs(database, 1)
    assert life(database, uuid) == [('Initial', 'client')]
    (made,) = database.read(history.steps, uuid, EVERYBODY)
    (arq,) = database.read(arqs.listed, Query(filters={'uuid': (uuid,)}), EVERYBODY)
    assert made.at == arq.created_at


def test_the_steps_of_a_bind_that_its_host_prepares(database: Database) -> None:
    uuids, card = add_arqs(database, 2), add_card(database, 2, needs_host=True)
    wanted = bindings(uuids, card)
    job = database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
    claimed = database.write(binding.claim, job, uuids, None, BOUND)
    database.write(binding.succeed, claimed.job, uuids, None, BOUND)
    database.write(release.unbind, uuids, EVERYBODY, None)
    for uuid in uuids:
        assert life(database, uuid) == [
            ('Initial', 'client'),
            ('BindStarted', 'client'),
            ('Claimed', 'conductor'),
            ('Bound', 'agent'),
            ('Unbound', 'client'),
        ]


def test_a_failure_is_kept_with_its_reason(database: Database) -> None:
    uuids = add_arqs(database, 1)
    wanted = bindings(uuids, str(uuid4()))
    job = database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
    database.write(binding.fail, job, uuids, 'x' * 999, FAILED)
    _, started, failed = database.read(history.steps, uuids[0], EVERYBODY)
    assert (started.reason, failed.step) == (None, 'BindFailed')
    assert failed.reason == 'x' * 255
    assert started.at <= failed.at


def test_the_history_goes_with_its_request(database: Database) -> None:
    uuids, card = add_arqs(database, 1), add_card(database, 1)
    wanted = bindings(uuids, card)
    database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
    database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    events = select(func.count()).select_from(ArqEvent)
    assert database.read(lambda session: session.scalar(events)) == 0
