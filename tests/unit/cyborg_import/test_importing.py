# SPDX-License-Identifier: Apache-2.0
"""Tests of an import into the database, with the answers of Placement and Nova."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from cyborg_lite.cyborg_import.importing import CyborgImport
from cyborg_lite.cyborg_import.plan import Table
from cyborg_lite.cyborg_import.source_rows import (
    SourceArq,
    SourceAttribute,
    SourceControlPath,
    SourceDatabase,
    SourceDeployable,
    SourceDevice,
    SourceHandle,
    SourceProfile,
)
from cyborg_lite.db.core.engine import Database
from tests.doubles.placement import FakePlacement

NOW = datetime(2026, 11, 22, tzinfo=UTC)
HOST = 'compute-1'
ADDRESS = '{"domain": "0000", "bus": "3b", "device": "00", "function": "0"}'
GROUPS = '{"groups": [{"resources:PGPU": "1"}]}'


def uuid(number: int) -> str:
    return str(UUID(int=number))


INSTANCE, PROVIDER = uuid(900), uuid(500)
SOURCE = SourceDatabase(
    'b47c8f2d1e3a',
    profiles=(SourceProfile(1, uuid(1), 'gpu', GROUPS, None, NOW),),
    devices=(
        SourceDevice(
            1, uuid(2), 'GPU', '10de', 'T4', '{}', None, HOST, 'enabled', None, NOW
        ),
    ),
    control_paths=(SourceControlPath(1, 1, ADDRESS),),
    deployables=(
        SourceDeployable(1, uuid(3), None, 1, 'a', 1, PROVIDER, 'NVIDIA', None, NOW),
    ),
    handles=(SourceHandle(1, uuid(4), 1, 1, 'PCI', ADDRESS, NOW),),
    attributes=(SourceAttribute(1, uuid(5), 1, 'rc', 'PGPU', NOW),),
    arqs=(
        SourceArq(1, uuid(6), 'lab', 'Bound', 1, HOST, PROVIDER, 1, 0, INSTANCE, NOW),
    ),
)


class InstanceList:
    """The part of the Nova client that finds missing instances."""

    def __init__(self) -> None:
        self.instances: frozenset[str] = frozenset({INSTANCE})

    def find_missing_instances(self, uuids: Collection[str]) -> frozenset[str]:
        return frozenset(uuids) - self.instances


@pytest.fixture
def placement() -> FakePlacement:
    return FakePlacement()


@pytest.fixture
def nova() -> InstanceList:
    return InstanceList()


@pytest.fixture
def service(
    database: Database, placement: FakePlacement, nova: InstanceList
) -> CyborgImport:
    # Any: the doubles have the used parts of the clients only.
    clients: Any = placement, nova
    return CyborgImport(database, *clients)


def test_plan_notes_objects_unknown_to_placement(
    service: CyborgImport, placement: FakePlacement
) -> None:
    reasons = ' '.join(note.reason for note in service.plan(SOURCE).notes)
    assert f'Placement has no provider {PROVIDER}' in reasons
    assert f'Placement has no compute node {HOST}' in reasons
    assert 'has no allocation on provider' in reasons
    assert not placement.writes


def test_plan_of_complete_cloud_has_no_notes(
    service: CyborgImport, placement: FakePlacement
) -> None:
    root = placement.create_provider(uuid(400), HOST, None)
    placement.create_provider(PROVIDER, 'card', root.uuid)
    placement.providers[PROVIDER].inventories = {}
    consumer = placement.allocate(PROVIDER, {})
    placement.consumers[INSTANCE] = placement.consumers.pop(consumer.uuid)
    assert not service.plan(SOURCE).notes


def test_plan_refuses_arq_of_deleted_instance(
    service: CyborgImport, nova: InstanceList
) -> None:
    nova.instances = frozenset()
    plan = service.plan(SOURCE)
    assert (plan.arqs, plan.count_refused(Table.ARQS)) == ((), 1)


def test_import_is_written_once_and_undone(service: CyborgImport) -> None:
    plan = service.plan(SOURCE)
    service.write(plan)
    repeated = service.plan(SOURCE)
    assert not any(repeated.list_uuids().values())
    assert set(repeated.stored.values()) == {1}
    counts, notes = service.undo(plan.list_uuids())
    # Attributes are deleted with their deployable.
    assert counts == dict.fromkeys(set(Table) - {Table.ATTRIBUTES}, 1)
    assert not notes
    assert any(service.plan(SOURCE).list_uuids().values())
