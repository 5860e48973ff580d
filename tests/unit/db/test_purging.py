# SPDX-License-Identifier: Apache-2.0
"""Deletion of old rows: the rows that each function selects, and their number."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import insert

from cyborg_lite.db import purging
from cyborg_lite.db.arqs import history
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ArqEvent, ReceivedCall, Service
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.arqs.arqs import Actor
from cyborg_lite.model.hosts.services import CONDUCTOR
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.reports import card, report
from tests.builders.table_rows import change_rows, count_rows, execute

LIMIT = datetime.now(UTC) - timedelta(days=30)
BEFORE, AFTER = LIMIT - timedelta(seconds=2), LIMIT + timedelta(seconds=2)


def test_delete_old_services_spares_recent_and_used(database: Database) -> None:
    database.write(reports.store_report, report(card(1)))
    database.write(services.record_start, CONDUCTOR, 'controller', '1')
    change_rows(database, Service, heartbeat_at=AFTER)
    assert database.write(purging.delete_old_services, LIMIT) == 0
    change_rows(database, Service, heartbeat_at=BEFORE)
    assert database.write(purging.delete_old_services, LIMIT) == 1
    assert len(database.read(services.list_services)) == 1


def test_delete_old_calls_spares_recent_ones(database: Database) -> None:
    rows = [{'id': key, 'received_at': at} for key, at in (('a', BEFORE), ('b', AFTER))]
    execute(database, insert(ReceivedCall), rows)
    assert database.write(purging.delete_old_calls, LIMIT) == 1
    assert database.write(purging.delete_old_calls, LIMIT) == 0


def test_shorten_history_deletes_steps_above_maximum(database: Database) -> None:
    (arq,) = create_bound_arqs(database, 1)
    row = {'arq_uuid': arq, 'step': 'Health', 'actor': Actor.AGENT, 'at': BEFORE}
    missing = history.MAX_STEPS - count_rows(database, ArqEvent)
    execute(database, insert(ArqEvent), [row] * missing)
    assert database.read(history.list_long_histories) == []
    assert database.write(history.shorten_history, arq) == 0
    execute(database, insert(ArqEvent), [row] * 3)
    assert database.read(history.list_long_histories) == [arq]
    assert database.write(history.shorten_history, arq) == 3
    assert database.read(history.list_long_histories) == []
