# SPDX-License-Identifier: Apache-2.0
"""Table of all changes of ARQs and handle owners, written by triggers.

A trigger writes its row in the transaction of the change. Rows of one ARQ, and of one
handle, are numbered in the order of the commits, because the changed row is locked.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from sqlalchemy import Engine, create_engine, text

from tests.chaos.history.records import REMOVED, Claim, Step

_COLUMNS: Final = (
    'at, kind, arq, previous, state, generation, instance, hostname, handle'
)

_TABLE: Final = """
    CREATE TABLE history_steps (
        number {serial} PRIMARY KEY, at {double} NOT NULL, kind VARCHAR(8) NOT NULL,
        arq VARCHAR(36), previous VARCHAR(36), state VARCHAR(36), generation INT,
        instance VARCHAR(36), hostname VARCHAR(255), handle VARCHAR(128))
"""
_INDEX: Final = 'CREATE INDEX ix_history_steps_arq ON history_steps (arq)'

_HOST: Final = """
    (SELECT d.hostname FROM deployables p JOIN devices d ON d.id = p.device_id
     WHERE p.id = NEW.deployable_id)
"""

_INSERT_ARQ: Final = f"""
    INSERT INTO history_steps ({_COLUMNS}) VALUES ({{clock}}, 'arq', NEW.uuid, {{old}},
    NEW.state, NEW.generation, NEW.instance_uuid, NEW.hostname, NULL);
"""
_DELETE_ARQ: Final = f"""
    INSERT INTO history_steps ({_COLUMNS}) VALUES ({{clock}}, 'arq', OLD.uuid,
    OLD.state, '{REMOVED}', OLD.generation, NULL, NULL, NULL);
"""
_CHANGE_HANDLE: Final = f"""
    INSERT INTO history_steps ({_COLUMNS}) VALUES ({{clock}}, 'handle', NEW.arq_uuid,
    OLD.arq_uuid, NULL, NEW.generation, NULL, {_HOST}, NEW.key);
"""

_CHANGED: Final = """
    (OLD.state, OLD.generation, OLD.instance_uuid) {differs}
    (NEW.state, NEW.generation, NEW.instance_uuid)
"""

_MARIADB: Final = {
    'serial': 'BIGINT AUTO_INCREMENT',
    'double': 'DOUBLE',
    'clock': 'UNIX_TIMESTAMP(SYSDATE(6))',
}
_POSTGRESQL: Final = {
    'serial': 'BIGSERIAL',
    'double': 'DOUBLE PRECISION',
    'clock': 'extract(epoch FROM clock_timestamp())',
}

_SQLITE: Final = {
    'serial': 'INTEGER',
    'double': 'DOUBLE',
}
_CLOCK: Final = "(julianday('now') - 2440587.5) * 86400.0"  # of SQLite


def create(connection: str, clock: str = _CLOCK) -> None:
    """Create the table and the triggers in a database that has the schema.

    :param clock: SQL for the seconds since the epoch, if the database is SQLite
    """
    engine = create_engine(connection)
    builds: Mapping[str, Callable[[], list[str]]] = {
        'postgresql': _postgresql,
        'mysql': _mariadb,
        'sqlite': partial(_sqlite, clock),
    }
    with engine.begin() as opened:
        for statement in builds[engine.dialect.name]():
            opened.execute(text(statement))
    engine.dispose()


def _mariadb() -> list[str]:
    def trigger(name: str, event: str, table: str, body: str, condition: str) -> str:
        before, after = (f'IF {condition} THEN', 'END IF;') if condition else ('', '')
        return (
            f'CREATE TRIGGER history_{name} AFTER {event} ON {table} '
            f'FOR EACH ROW BEGIN {before} {body} {after} END'
        )

    is_changed = (
        'NOT (OLD.state <=> NEW.state AND OLD.generation <=> NEW.generation'
        ' AND OLD.instance_uuid <=> NEW.instance_uuid)'
    )
    has_moved = 'NOT (OLD.arq_uuid <=> NEW.arq_uuid)'
    return _build(_MARIADB, trigger, is_changed, has_moved)


def _postgresql() -> list[str]:
    def trigger(name: str, event: str, table: str, body: str, condition: str) -> str:
        when = f'WHEN ({condition})' if condition else ''
        return f"""
            CREATE FUNCTION history_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN {body} RETURN NULL; END $$;
            CREATE TRIGGER history_{name} AFTER {event} ON {table}
            FOR EACH ROW {when} EXECUTE FUNCTION history_{name}();
        """

    is_changed = _CHANGED.format(differs='IS DISTINCT FROM')
    return _build(
        _POSTGRESQL, trigger, is_changed, 'OLD.arq_uuid IS DISTINCT FROM NEW.arq_uuid'
    )


def _sqlite(clock: str) -> list[str]:
    def trigger(name: str, event: str, table: str, body: str, condition: str) -> str:
        when = f'WHEN {condition}' if condition else ''
        return (
            f'CREATE TRIGGER history_{name} AFTER {event} ON {table} '
            f'FOR EACH ROW {when} BEGIN {body} END'
        )

    is_changed = _CHANGED.format(differs='IS NOT')
    dialect = {**_SQLITE, 'clock': clock}
    return _build(dialect, trigger, is_changed, 'OLD.arq_uuid IS NOT NEW.arq_uuid')


def _build(
    dialect: Mapping[str, str],
    trigger: Callable[[str, str, str, str, str], str],
    is_changed: str,
    has_moved: str,
) -> list[str]:
    """Return the statements that create the table, its index and its triggers."""
    clock = dialect['clock']
    created = _INSERT_ARQ.format(clock=clock, old='NULL')
    changed = _INSERT_ARQ.format(clock=clock, old='OLD.state')
    deleted = _DELETE_ARQ.format(clock=clock)
    moved = _CHANGE_HANDLE.format(clock=clock)
    return [
        _TABLE.format(**dialect),
        _INDEX,
        trigger('created', 'INSERT', 'arqs', created, ''),
        trigger('changed', 'UPDATE', 'arqs', changed, is_changed),
        trigger('deleted', 'DELETE', 'arqs', deleted, ''),
        trigger('moved', 'UPDATE', 'attach_handles', moved, has_moved),
    ]


class StepsTable:
    """Reads the table directly, without a proxy."""

    def __init__(self, connection: str) -> None:
        self._engine: Engine = create_engine(connection, isolation_level='AUTOCOMMIT')

    def last_step(self, arq: str) -> int:
        """Return the number of the last visible step of an ARQ; 0: none."""
        query = "SELECT max(number) FROM history_steps WHERE kind = 'arq'"
        query += ' AND arq = :arq'
        with self._engine.connect() as connection:
            return connection.execute(text(query), {'arq': arq}).scalar() or 0

    def read(self) -> tuple[list[Step], list[Claim]]:
        """Return all steps and claims."""
        query = f'SELECT number, {_COLUMNS} FROM history_steps ORDER BY number'
        with self._engine.connect() as connection:
            rows = connection.execute(text(query)).all()
        steps = [_step(row) for row in rows if row.kind == 'arq']
        return steps, [_claim(row) for row in rows if row.kind == 'handle']

    def clear(self) -> None:
        with self._engine.connect() as connection:
            connection.execute(text('DELETE FROM history_steps'))

    def close(self) -> None:
        self._engine.dispose()


# Any: rows have no types.
def _step(row: Any) -> Step:
    return Step(
        row.number,
        float(row.at),
        row.arq,
        row.previous or '',
        row.state,
        row.generation,
        row.instance or '',
        row.hostname or '',
    )


def _claim(row: Any) -> Claim:
    return Claim(
        row.number,
        float(row.at),
        row.hostname or '',
        row.handle,
        row.previous or '',
        row.arq or '',
    )


__all__: Sequence[str] = ['StepsTable', 'create']
