# SPDX-License-Identifier: Apache-2.0
"""Upgrades of filled databases from every earlier revision to the newest one.

``filled_databases/<revision>.json`` contains all rows of a database that the code of
that revision has filled: by table, each row with its values as text. Whoever adds a
revision adds the file of the revision before it. These files are never changed.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from cyborg_lite.db import arqs, attach_handles, devices, loaded_regions, migration
from cyborg_lite.db.device_profiles import former_servers
from cyborg_lite.db.engine import Database
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.db.tables import Base
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.queries import Query

_FOLDER: Final = Path(__file__).with_name('filled_databases')
_EARLIER: Final = [
    revision.number for revision in migration.list_revisions() if not revision.is_head
]
# By revision and table: the columns that this revision renames.
_RENAMED: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    '0002': {
        'arqs': {'comes_back': 'for_former_server'},
        'attach_handles': {'turn': 'generation'},
        'devices': {'address': 'control_address', 'figures': 'telemetry'},
        'former_servers': {'left_at': 'released_at'},
        'jobs': {'touched': 'rerun_requested'},
        'loaded_regions': {
            'loaded': 'bitstream',
            'changed': 'changed_by_bind',
            'earlier': 'previous_bitstream',
            'earlier_function': 'previous_function_id',
            'unusable': 'unusable_reason',
        },
    }
}
# By revision and table: the columns that this revision adds, with their values in
# existing rows.
_ADDED: Final[Mapping[str, Mapping[str, Mapping[str, object]]]] = {
    '0003': {
        'arqs': {'generation': 0},
        'attach_handles': {'bind_generation': 0},
    },
    '0004': {
        'services': {'identity': None, 'report_number': 0},
        'attributes': {'hidden': 0},
    },
    '0005': {'jobs': {'host': None}},
    '0006': {
        'attach_handles': {
            'cleaning': 'never',
            'clean_state': 'clean',
            'clean_reason': '',
        },
    },
    '0007': {
        'devices': {'health_since': None, 'telemetry_at': None},
        'arqs': {'resource_class': None, 'bound_at': None},
    },
    '0008': {'deployables': {'typed_attributes': None}},
    '0010': {
        'device_profiles': {'alternatives': None},
        'arqs': {'alternatives': None, 'alternative': 0},
    },
    '0011': {
        'devices': {'generation': 0},
        'attributes': {'generation': 0},
        'device_profiles': {'generation': 0},
    },
}
# By revision: the tables that this revision adds, without rows.
_NEW_TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    '0006': ('cleanings',),
    '0007': (
        'usage_periods',
        'device_events',
        'notifications',
        'leases',
        'project_locks',
    ),
    '0009': ('reconfigurations',),
    '0010': ('profile_choices',),
}

_Rows = dict[str, list[dict[str, Any]]]  # by table; column values of any type


def _fill(url: str, revision: str) -> None:
    """Create a database of an earlier revision with the rows of its file."""
    migration.upgrade(url, revision)
    tables = json.loads((_FOLDER / f'{revision}.json').read_text())
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for name, rows in tables.items():
            # Columns without a type: the server converts the text to its own types.
            table = sa.table(name, *(sa.column(column) for column in rows[0]))
            connection.execute(sa.insert(table), rows)
    engine.dispose()


def _read_rows(url: str) -> _Rows:
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        metadata = sa.MetaData()
        metadata.reflect(connection)
        rows = {
            name: [
                dict(row)
                for row in connection.execute(
                    sa.select(table).order_by(table.c.id)
                ).mappings()
            ]
            for name, table in metadata.tables.items()
            if name != 'alembic_version'
        }
    engine.dispose()
    return rows


def _rename(rows: _Rows, revision: str) -> _Rows:
    """Return the rows of a revision with the columns of the newest one."""
    for number, renamed in _RENAMED.items():
        if number <= revision:
            continue
        for table, columns in renamed.items():
            rows[table] = [
                {columns.get(name, name): value for name, value in row.items()}
                for row in rows[table]
            ]
    _add_columns_and_tables(rows, revision)
    return rows


def _add_columns_and_tables(rows: _Rows, revision: str) -> None:
    for number, added in _ADDED.items():
        if number > revision:
            for table, values in added.items():
                rows[table] = [{**row, **values} for row in rows[table]]
    for number, tables in _NEW_TABLES.items():
        if number > revision:
            rows.update((table, []) for table in tables)


def _describe(url: str) -> dict[str, Any]:
    """Return columns, keys, indexes and options of all tables."""
    engine = sa.create_engine(url)
    inspector = sa.inspect(engine)
    names = set(inspector.get_table_names()) - {'alembic_version'}

    def by_name(items: Any) -> dict[str, Any]:
        return {item['name']: item for item in items}

    description = {
        name: {
            'columns': [
                {**column, 'type': str(column['type'])}
                for column in inspector.get_columns(name)
            ],
            'primary key': inspector.get_pk_constraint(name),
            'foreign keys': by_name(inspector.get_foreign_keys(name)),
            'unique': by_name(inspector.get_unique_constraints(name)),
            'indexes': by_name(inspector.get_indexes(name)),
            'checks': sorted(
                check['sqltext'] for check in inspector.get_check_constraints(name)
            ),
            'options': inspector.get_table_options(name),
        }
        for name in names
    }
    engine.dispose()
    return description


def test_filled_databases_every_earlier_revision_has_file() -> None:
    assert sorted(file.stem for file in _FOLDER.glob('*.json')) == _EARLIER


@pytest.mark.parametrize('revision', _EARLIER)
def test_filled_database_file_fills_every_table(empty_url: str, revision: str) -> None:
    _fill(empty_url, revision)
    assert all(_read_rows(empty_url).values())


@pytest.mark.parametrize('revision', _EARLIER)
def test_upgrade_filled_database_keeps_rows(empty_url: str, revision: str) -> None:
    _fill(empty_url, revision)
    before = _read_rows(empty_url)
    migration.upgrade(empty_url)
    assert migration.current_revision(empty_url) == migration.head_revision()
    assert _read_rows(empty_url) == _rename(before, revision)


@pytest.mark.parametrize('revision', _EARLIER)
def test_upgrade_filled_database_schema_equals_models(
    empty_url: str, second_empty_url: str, revision: str
) -> None:
    _fill(empty_url, revision)
    migration.upgrade(empty_url)
    engine = sa.create_engine(second_empty_url)
    Base.metadata.create_all(engine)
    engine.dispose()
    assert _describe(empty_url) == _describe(second_empty_url)


def test_upgrade_interrupted_revision_0002_continues(empty_url: str) -> None:
    """MariaDB commits each statement, so some columns may be renamed already."""
    _fill(empty_url, '0001')
    before = _read_rows(empty_url)
    engine = sa.create_engine(empty_url)
    with engine.begin() as connection:
        statement = 'ALTER TABLE devices RENAME COLUMN address TO control_address'
        connection.execute(sa.text(statement))
    engine.dispose()
    migration.upgrade(empty_url)
    assert _read_rows(empty_url) == _rename(before, '0001')


def test_upgrade_interrupted_revision_0003_continues(empty_url: str) -> None:
    _fill(empty_url, '0002')
    before = _read_rows(empty_url)
    engine = sa.create_engine(empty_url)
    with engine.begin() as connection:
        column = "generation INTEGER DEFAULT '0' NOT NULL"
        connection.execute(sa.text(f'ALTER TABLE arqs ADD COLUMN {column}'))
    engine.dispose()
    migration.upgrade(empty_url)
    assert _read_rows(empty_url) == _rename(before, '0002')


def test_upgrade_interrupted_revision_0004_continues(empty_url: str) -> None:
    _fill(empty_url, '0003')
    before = _read_rows(empty_url)
    engine = sa.create_engine(empty_url)
    with engine.begin() as connection:
        statement = 'ALTER TABLE services ADD COLUMN identity VARCHAR(36)'
        connection.execute(sa.text(statement))
    engine.dispose()
    migration.upgrade(empty_url)
    assert _read_rows(empty_url) == _rename(before, '0003')


def test_upgrade_interrupted_revision_0006_continues(empty_url: str) -> None:
    _fill(empty_url, '0005')
    before = _read_rows(empty_url)
    engine = sa.create_engine(empty_url)
    with engine.begin() as connection:
        column = "cleaning VARCHAR(16) DEFAULT 'never' NOT NULL"
        connection.execute(sa.text(f'ALTER TABLE attach_handles ADD COLUMN {column}'))
    engine.dispose()
    migration.upgrade(empty_url)
    assert _read_rows(empty_url) == _rename(before, '0005')


def test_upgrade_interrupted_revision_0007_continues(empty_url: str) -> None:
    _fill(empty_url, '0006')
    before = _read_rows(empty_url)
    engine = sa.create_engine(empty_url)
    with engine.begin() as connection:
        column = 'resource_class VARCHAR(255)'
        connection.execute(sa.text(f'ALTER TABLE arqs ADD COLUMN {column}'))
    engine.dispose()
    migration.upgrade(empty_url)
    assert _read_rows(empty_url) == _rename(before, '0006')


def test_upgrade_interrupted_revision_0011_continues(empty_url: str) -> None:
    _fill(empty_url, '0010')
    before = _read_rows(empty_url)
    engine = sa.create_engine(empty_url)
    with engine.begin() as connection:
        column = "generation INTEGER DEFAULT '0' NOT NULL"
        connection.execute(sa.text(f'ALTER TABLE devices ADD COLUMN {column}'))
    engine.dispose()
    migration.upgrade(empty_url)
    assert _read_rows(empty_url) == _rename(before, '0010')


def test_upgrade_revision_0001_values_are_readable(empty_url: str) -> None:
    _fill(empty_url, '0001')
    migration.upgrade(empty_url)
    database = Database(empty_url)
    try:
        _check_values(database)
    finally:
        database.close()


def _check_values(database: Database) -> None:
    all_projects = Scope(project_id=None)
    listed_arqs = database.read(arqs.list_arqs, Query(detailed=True), all_projects)
    assert sorted(arq.state for arq in listed_arqs) == [
        'BindStarted',
        'Bound',
        'Initial',
    ]
    uuids = [arq.uuid for arq in listed_arqs]
    (handle,) = database.read(attach_handles.list_handles_of_arqs, uuids)
    assert (handle.control_address, handle.generation) == ('0000:3b:00.0', 2)
    gpu, *_, fpga = database.read(devices.list_devices, Query())
    assert gpu.usage is not None
    assert (gpu.usage.health, gpu.usage.counters) == (Health.DEGRADED, {'fatal': 3})
    assert (fpga.hostname, fpga.health_reason) == ('compute-2', 'nova')
    previous = database.read(loaded_regions.find_previous_load, 3)
    assert previous is not None
    assert previous.bitstream is not None
    assert database.read(former_servers.has_former_servers, 1)
    owner = Owner('conductor:1:1', 1000)
    syncs = database.write(queue.lease_jobs, owner, 9, ['placement-sync'])
    reruns = {job.payload['host']: job.rerun_requested for job in syncs}
    assert reruns == {'compute-1': 3, 'compute-2': 1}
    assert len(database.read(administration.list_jobs, [], ['failed'])) == 1
