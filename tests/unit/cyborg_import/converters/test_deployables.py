# SPDX-License-Identifier: Apache-2.0
"""Tests of imported deployables and attributes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cyborg_lite.cyborg_import.converters.deployables import (
    check_providers,
    convert_attributes,
    convert_deployables,
)
from cyborg_lite.cyborg_import.converters.devices import convert_devices
from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.plan import (
    CloudRows,
    NewDeployable,
    StoredRows,
    Table,
)
from cyborg_lite.cyborg_import.source_rows import (
    SourceAttribute,
    SourceControlPath,
    SourceDatabase,
    SourceDeployable,
    SourceDevice,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
ADDRESS = '{"domain": "0000", "bus": "3b", "device": "00", "function": "0"}'
DEVICE = SourceDevice(
    1, 'd', 'FPGA', '10ee', 'U250', '{}', None, 'compute-1', None, None, NOW
)
ROW = SourceDeployable(1, 'p1', None, 1, 'a', 2, 'rp1', 'xilinx', 'image', NOW)
CLASS = SourceAttribute(1, 'a1', 1, 'rc', 'FPGA', NOW)
TRAIT = SourceAttribute(2, 'a2', 1, 'trait0', 'CUSTOM_FPGA_XILINX', NOW)


def build_source(
    *deployables: SourceDeployable, attributes: tuple[SourceAttribute, ...] = ()
) -> SourceDatabase:
    paths = (SourceControlPath(1, 1, ADDRESS),)
    return SourceDatabase(
        'x',
        devices=(DEVICE,),
        control_paths=paths,
        deployables=deployables,
        attributes=attributes,
    )


def convert(
    source: SourceDatabase, notes: Notes, stored: StoredRows | None = None
) -> dict[int, NewDeployable]:
    stored = stored or StoredRows()
    devices = convert_devices(source, stored, notes)
    return convert_deployables(source, devices, stored, notes)


def test_deployable_without_class_has_no_provider() -> None:
    notes = Notes(NOW)
    (deployable,) = convert(build_source(ROW), notes).values()
    assert (deployable.rp_uuid, deployable.resource_class) == (None, None)
    assert 'no attribute rc' in notes.items[0].reason


def test_deployable_with_address_of_device_is_root() -> None:
    root = replace(ROW, id=2, uuid='p2', name='compute-1_0000:3b:00.0', rp_uuid='rp2')
    deployables = convert(build_source(ROW, root, attributes=(CLASS,)), Notes(NOW))
    assert {row.uuid: row.parent_uuid for row in deployables.values()} == {
        'p1': 'p2',
        'p2': None,
    }


@pytest.mark.parametrize('is_stored', [False, True])
def test_provider_of_another_deployable_is_refused(is_stored: bool) -> None:
    notes = Notes(NOW)
    uuids = frozenset({'p1'} if is_stored else ())
    stored = StoredRows({Table.DEPLOYABLES: uuids}, rp_uuids=frozenset({'rp1'}))
    source = build_source(ROW, attributes=(CLASS,))
    assert bool(convert(source, notes, stored)) is is_stored
    assert ('provider rp1 already' in str(notes.items)) is not is_stored


def test_attributes_reported_by_agents_are_marked() -> None:
    rack = SourceAttribute(3, 'a3', 1, 'rack', 'r17', NOW)
    source = build_source(ROW, attributes=(CLASS, TRAIT, rack))
    notes = Notes(NOW)
    attributes = convert_attributes(source, convert(source, notes), notes)
    assert {row.key: row.reported for row in attributes} == {
        'rc': True,
        'trait0': True,
        'rack': False,
    }


@pytest.mark.parametrize(
    ('attribute', 'reason'),
    [
        (replace(CLASS, uuid='b', value='PGPU'), 'has another attribute rc'),
        (replace(CLASS, uuid='b', key=''), 'must have 1 to 255 characters'),
        (replace(CLASS, uuid='b', key='k' * 256), 'must have 1 to 255 characters'),
        (replace(CLASS, uuid='b', deployable_id=9), 'deployable is not imported'),
    ],
)
def test_unusable_attribute_is_refused(attribute: SourceAttribute, reason: str) -> None:
    source = build_source(ROW, attributes=(CLASS, attribute))
    notes = Notes(NOW)
    attributes = convert_attributes(source, convert(source, Notes(NOW)), notes)
    assert [(row.uuid, row.value) for row in attributes] == [('a1', 'FPGA')]
    assert [(note.uuid, reason in note.reason) for note in notes.items] == [('b', True)]


def test_missing_providers_and_hosts_are_noted() -> None:
    deployables = convert(build_source(ROW, attributes=(CLASS,)), Notes(NOW)).values()
    notes = Notes(NOW)
    cloud = CloudRows(frozenset(), frozenset(), {}, None)
    check_providers(deployables, {'d': 'compute-1'}, cloud, notes)
    assert [note.table for note in notes.items] == [Table.DEPLOYABLES, Table.DEVICES]
    cloud = CloudRows(frozenset({'rp1'}), frozenset({'compute-1'}), {}, None)
    check_providers(deployables, {'d': 'compute-1'}, cloud, notes)
    assert len(notes.items) == 2
