# SPDX-License-Identifier: Apache-2.0
"""Tests of the rows that an import makes, and of those that it refuses."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

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
from cyborg_lite.model.devices.devices import DeviceStatus

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


def reasons(result: ImportPlan, table: Table) -> list[str]:
    """Return the reasons of the notes on a table."""
    return [note.reason for note in result.notes if note.table is table]


def test_plan_card_gets_identity_of_agent() -> None:
    result = plan(build_source())
    (device,), (handle,) = result.devices, result.handles
    assert device.facts.hardware_id == '0000:3b:00.0 10de:1eb8'
    assert (handle.facts.key, handle.arq_uuid) == ('0000:3b:00.0', uuid(1))
    assert handle.facts.info['bus'] == '3b'
    assert not result.notes


@pytest.mark.parametrize(
    ('columns', 'reason'),
    [
        ({'state': 'BindStarted'}, 'had not finished its bind'),
        ({'state': 'Deleting'}, 'had not finished its deletion'),
        ({'state': 'Lost'}, 'Its state Lost is unknown.'),
        ({'device_profile_id': 7}, 'device profile is not imported'),
        ({'device_profile_group_id': 3}, 'has no group 3'),
        ({'project_id': 'p' * 65}, 'longer than 64'),
        ({'attach_handle_id': None}, 'without an attach handle'),
        ({'attach_handle_id': 7}, 'attach handle is not imported'),
        ({'hostname': None}, 'without a server, host or provider'),
    ],
)
def test_plan_unusable_arq_is_refused(columns: dict[str, Any], reason: str) -> None:
    result = plan(build_source(arqs=(build_arq(**columns),)))
    assert not result.arqs
    (text,) = reasons(result, Table.ARQS)
    assert reason in text
    # No other instance gets the device of the server.
    assert result.handles[0].facts.in_use


def test_plan_handle_with_two_owners_is_refused() -> None:
    second = build_arq(id=2, uuid=uuid(2), instance_uuid=uuid(901))
    result = plan(build_source(arqs=(build_arq(), second)))
    assert [arq.uuid for arq in result.arqs] == [uuid(1)]
    assert 'Another ARQ owns' in reasons(result, Table.ARQS)[0]


def test_plan_device_being_cleaned_is_maintaining() -> None:
    (device,) = build_source().devices
    result = plan(build_source(devices=(replace(device, device_state='cleaning'),)))
    assert result.devices[0].status is DeviceStatus.MAINTAINING
    assert 'cleaning' in result.devices[0].status_reason


def test_plan_device_without_address_refuses_its_rows() -> None:
    handle = replace(build_handle(), attach_info='nonsense')
    result = plan(build_source(control_paths=(), handles=(handle,)))
    assert result.profiles
    assert not any((result.devices, result.deployables, result.handles, result.arqs))
    refused = {note.table for note in result.notes}
    assert refused == {*Table} - {Table.PROFILES}


def test_plan_functions_of_card_get_common_root() -> None:
    parts = (build_deployable(1, '0000:3b:00.1'), build_deployable(2, '0000:3b:00.0'))
    result = plan(build_source(deployables=parts))
    child, root = result.deployables
    assert (root.parent_uuid, child.parent_uuid) == (None, root.uuid)


@pytest.mark.parametrize(
    ('name', 'key'),
    [
        ('0000:3b:00.0', '0000:3b:00.0/nvidia-223/4'),
        # The parent is a virtual function, which has one vGPU.
        ('0000:3b:00.4', '0000:3b:00.0/nvidia-223'),
    ],
)
def test_plan_vgpu_gets_key_of_driver(name: str, key: str) -> None:
    function = int(name[-1])
    handle = build_handle(1, asked_type='nvidia-223', vgpu_mark='nvidia-223_4')
    paths = (SourceControlPath(1, 1, address(function)),)
    result = plan(build_source(handles=(handle,), control_paths=paths))
    assert result.handles[0].facts.key == key
    assert result.handles[0].facts.needs_host


@pytest.mark.parametrize('text', ['', '[]', '{}', '{"groups": [{"nonsense": "1"}]}'])
def test_plan_invalid_profile_is_refused(text: str) -> None:
    profile = SourceProfile(1, uuid(40), 'gpu', text, None, NOW)
    result = plan(build_source(profiles=(profile,)))
    assert not result.profiles
    assert reasons(result, Table.PROFILES)[0].startswith('gpu: ')


def test_plan_attribute_key_twice_is_refused() -> None:
    attributes = build_source().attributes
    second = SourceAttribute(3, uuid(52), 1, 'rc', 'VGPU', NOW)
    result = plan(build_source(attributes=(*attributes, second)))
    assert len(result.attributes) == len(attributes)
    assert reasons(result, Table.ATTRIBUTES) == [
        'Its deployable has another attribute rc.'
    ]


def test_plan_released_handle_is_not_claimed_again() -> None:
    uuids = {Table.HANDLES: frozenset({uuid(31)})}
    cloud = CloudRows(frozenset(), frozenset(), {}, None)
    result = plan_import(build_source(), StoredRows(uuids), cloud, NOW)
    assert not result.arqs
    assert 'has released it since' in reasons(result, Table.ARQS)[0]


def test_plan_device_of_running_agent_is_refused() -> None:
    stored = StoredRows(hardware_ids=frozenset({(HOST, '0000:3b:00.0 10de:1eb8')}))
    cloud = CloudRows(frozenset(), frozenset(), {}, None)
    result = plan_import(build_source(), stored, cloud, NOW)
    assert not result.devices
    assert f'host forget {HOST}' in reasons(result, Table.DEVICES)[0]
