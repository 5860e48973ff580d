# SPDX-License-Identifier: Apache-2.0
"""Tests of the rows that an import makes, and of those that it refuses."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from cyborg_lite.cyborg_import.plan import (
    CloudRows,
    ImportPlan,
    StoredRows,
    Table,
)
from cyborg_lite.cyborg_import.planning import plan_import
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

NOW = datetime(2026, 11, 22, tzinfo=UTC)
HOST = 'compute-1'
GROUPS = '{"groups": [{"resources:PGPU": "1"}]}'


def uuid(number: int) -> str:
    """Return a uuid that is equal in all tests."""
    return str(UUID(int=number))


INSTANCE = uuid(900)
PROVIDER = uuid(500)


def address(function: int = 0, **fields: str) -> str:
    """Return an address as Cyborg stores it, with further values."""
    parts = {'domain': '0x0000', 'bus': '3B', 'device': '0', 'function': str(function)}
    return json.dumps(parts | fields)


def build_arq(**columns: Any) -> SourceArq:
    """Return a bound ARQ with other values in some columns."""
    values: dict[str, Any] = {
        'id': 1,
        'uuid': uuid(1),
        'project_id': 'a' * 32,
        'state': 'Bound',
        'device_profile_id': 1,
        'hostname': HOST,
        'device_rp_uuid': PROVIDER,
        'attach_handle_id': 1,
        'device_profile_group_id': 0,
        'instance_uuid': INSTANCE,
        'created_at': None,
    }
    return SourceArq(**(values | columns))


def build_deployable(number: int = 1, name: str = '0000:3b:00.0') -> SourceDeployable:
    """Return a deployable that is named for an address."""
    rp_uuid = str(UUID(int=499 + number))
    full_name = f'{HOST}_{name}'
    return SourceDeployable(
        number, uuid(20 + number), None, 1, full_name, 1, rp_uuid, 'NVIDIA', None, NOW
    )


def build_handle(number: int = 1, deployable: int = 1, **fields: str) -> SourceHandle:
    """Return a PCI handle in use; with further values, a vGPU."""
    kind = 'MDEV' if fields else 'PCI'
    info = address(0 if fields else number - 1, **fields)
    return SourceHandle(number, uuid(30 + number), deployable, 1, kind, info, NOW)


def build_source(**tables: Any) -> SourceDatabase:
    """Return a database of a card with a bound ARQ, with other tables."""
    device = SourceDevice(
        1, uuid(10), 'GPU', '0x10DE', 'T4', '{}', None, HOST, 'enabled', None, NOW
    )
    values = {
        'profiles': (SourceProfile(1, uuid(40), 'gpu', GROUPS, None, NOW),),
        'devices': (device,),
        'control_paths': (SourceControlPath(1, 1, address()),),
        'deployables': (build_deployable(),),
        'handles': (build_handle(),),
        'attributes': (
            SourceAttribute(1, uuid(50), 1, 'rc', 'PGPU', NOW),
            SourceAttribute(2, uuid(51), 1, 'trait1', 'CUSTOM_NVIDIA_1EB8', NOW),
        ),
        'arqs': (build_arq(),),
    }
    return SourceDatabase('b47c8f2d1e3a', **(values | tables))


def plan(source: SourceDatabase, **cloud: Any) -> ImportPlan:
    """Return the plan of an import into an empty database."""
    values = {
        'rp_uuids': frozenset({PROVIDER}),
        'compute_nodes': frozenset({HOST}),
        'allocations': {INSTANCE: frozenset({PROVIDER})},
        'missing_instances': frozenset(),
    }
    return plan_import(source, StoredRows(), CloudRows(**(values | cloud)), NOW)


def test_plan_card_gets_identity_of_agent() -> None:
    result = plan(build_source())
    (device,), (handle,) = result.devices, result.handles
    assert device.facts.hardware_id == '0000:3b:00.0 10de:1eb8'
    assert (handle.facts.key, handle.arq_uuid) == ('0000:3b:00.0', uuid(1))
    assert handle.facts.info['bus'] == '3b'
    assert not result.notes


def test_plan_device_without_address_refuses_its_rows() -> None:
    handle = replace(build_handle(), attach_info='nonsense')
    result = plan(build_source(control_paths=(), handles=(handle,)))
    assert result.profiles
    assert not any((result.devices, result.deployables, result.handles, result.arqs))
    refused = {note.table for note in result.notes}
    assert refused == {*Table} - {Table.PROFILES}
