# SPDX-License-Identifier: Apache-2.0
"""Tests of inserting and deleting imported rows; on servers in ``tests/functional``."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from sqlalchemy import insert, select

from cyborg_lite.cyborg_import import stored_rows
from cyborg_lite.cyborg_import.plan import CloudRows, ImportPlan, StoredRows, Table
from cyborg_lite.cyborg_import.planning import plan_import
from cyborg_lite.cyborg_import.source import read_source
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable
from cyborg_lite.db.providers import providers
from cyborg_lite.model.arqs.arqs import State
from tests.builders import cyborg_sample
from tests.builders.table_rows import execute, read_column

_USE: Final = select(Arq.uuid, Arq.resource_class, Arq.bound_at)


@pytest.fixture
def plan(tmp_path: Path) -> ImportPlan:
    """Return the plan of the sample in an empty database."""
    url = f'sqlite:///{tmp_path}/cyborg.sqlite'
    cyborg_sample.load(url)
    cloud = CloudRows(frozenset(), frozenset(), {}, None)
    stored = StoredRows()
    return plan_import(read_source(url), stored, cloud, datetime.now(UTC))


def test_insert_rows_are_found_as_stored(database: Database, plan: ImportPlan) -> None:
    database.write(stored_rows.insert_rows, plan)
    stored = database.read(stored_rows.read_stored_rows)
    for table, uuids in plan.list_uuids().items():
        assert stored.uuids[table] == set(uuids)
    assert stored.rp_uuids == {row.rp_uuid for row in plan.deployables}
    assert stored.profile_names['fpga-one'] in stored.uuids[Table.PROFILES]
    traits = database.read(providers.list_published_traits, [cyborg_sample.PROVIDER])
    assert traits == {'CUSTOM_FAKE_DEVICE'}


def test_insert_rows_start_use_of_bound_arqs(
    database: Database, plan: ImportPlan
) -> None:
    database.write(stored_rows.insert_rows, plan)
    rows = database.read(lambda session: session.execute(_USE).all())
    bound = {arq.uuid for arq in plan.arqs if arq.state is State.BOUND}
    assert {row.uuid for row in rows if row.bound_at is not None} == bound
    requested = {arq.uuid: arq.group for arq in plan.arqs}
    for row in rows:
        assert f'resources:{row.resource_class}' in requested[row.uuid]


def test_delete_rows_leaves_nothing(database: Database, plan: ImportPlan) -> None:
    database.write(stored_rows.insert_rows, plan)
    deleted, notes = database.write(stored_rows.delete_rows, plan.list_uuids())
    assert (deleted[Table.HANDLES], notes) == (32, ())
    stored = database.read(stored_rows.read_stored_rows)
    assert not any(stored.uuids.values())
    assert not database.read(providers.list_published_traits)


def test_delete_rows_keeps_device_that_agent_extended(
    database: Database, plan: ImportPlan
) -> None:
    database.write(stored_rows.insert_rows, plan)
    of_provider = Deployable.rp_uuid == cyborg_sample.PROVIDER
    (deployable,) = read_column(database, select(Deployable.id).where(of_provider))
    # A host report adds a handle.
    row = {'uuid': str(uuid4()), 'deployable_id': deployable, 'key': 'new'}
    execute(database, insert(AttachHandle), {**row, 'type': 'TEST_PCI', 'info': {}})
    deleted, notes = database.write(stored_rows.delete_rows, plan.list_uuids())
    assert deleted[Table.DEVICES] == 1
    assert {note.table for note in notes} == {Table.DEPLOYABLES, Table.DEVICES}
