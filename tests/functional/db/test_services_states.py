# SPDX-License-Identifier: Apache-2.0
"""Statements that a server receives when daemons change their state."""

from sqlalchemy import text
from sqlalchemy.orm import Session

from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from tests.builders.service_rows import expire_heartbeat
from tests.servers.databases import database_fixture

mariadb = database_fixture('mariadb')


def count_inserts(session: Session) -> int:
    """Return the INSERTs that the server has received over the connection."""
    row = session.execute(text("SHOW SESSION STATUS LIKE 'Com_insert'")).one()
    return int(row[1])


def test_switch_states_adds_all_jobs_at_once(mariadb: Database) -> None:
    """PyMySQL sends each row alone if a value of an INSERT is an expression."""
    for number in range(5):
        expire_heartbeat(mariadb, f'compute-{number}')
    oldest = mariadb.read(clock.read_time_before, 100.0)
    stale = mariadb.read(services.list_stale_services, oldest)

    def count(session: Session) -> int:
        before = count_inserts(session)
        assert len(services.switch_states(session, stale, oldest)) == 5
        return count_inserts(session) - before

    assert mariadb.write(count) == 1
