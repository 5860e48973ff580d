# SPDX-License-Identifier: Apache-2.0
"""Tests of job payloads and their JSON form."""

import json
from typing import Any

import pytest

from cyborg_lite.errors.jobs import InvalidJobPayload
from cyborg_lite.model.jobs import (
    AuditPayload,
    BindPayload,
    ConnectPayload,
    JobPayload,
    JobType,
    ModePayload,
    NewJob,
    NovaEventPayload,
    PlacementSyncPayload,
    ProgramPayload,
    ReleasePayload,
    add_bind_generation,
    describe_payload,
    job_key,
    read_bind_generation,
)

BIND = BindPayload('instance', ('arq-1', 'arq-2'), ('provider',), 'project', 3)
PAYLOADS: list[JobPayload] = [
    BIND,
    BindPayload('instance', (), ()),
    NovaEventPayload('instance', ('arq-1',), succeeded=False, generation=2),
    ConnectPayload('instance', ('arq-1',), generation=2),
    ReleasePayload('handle'),
    PlacementSyncPayload('compute-1'),
    PlacementSyncPayload('compute-1', deep=True),
    ProgramPayload('deployable', 'image', is_shell=True),
    ModePayload('device', 'sym;asym'),
    AuditPayload(),
]


@pytest.mark.parametrize('payload', PAYLOADS, ids=repr)
def test_payload_survives_json_round_trip(payload: JobPayload) -> None:
    stored = json.loads(json.dumps(payload.to_json()))
    assert type(payload).from_json(stored) == payload


def test_bind_payload_has_stable_keys() -> None:
    assert BIND.to_json() == {
        'instance': 'instance',
        'arqs': ['arq-1', 'arq-2'],
        'providers': ['provider'],
        'project': 'project',
        'generation': 3,
    }


def test_payload_omits_default_values() -> None:
    assert PlacementSyncPayload('compute-1').to_json() == {'host': 'compute-1'}
    assert 'generation' not in BindPayload('instance', (), ()).to_json()


@pytest.mark.parametrize('key', ['instance', 'arqs', 'providers', 'project'])
def test_bind_payload_missing_key_raises(key: str) -> None:
    stored = BIND.to_json()
    del stored[key]
    with pytest.raises(InvalidJobPayload, match=f'bind job .*: {key} is missing'):
        BindPayload.from_json(stored)


@pytest.mark.parametrize(
    ('payload_class', 'stored', 'reason'),
    [
        (BindPayload, {**BIND.to_json(), 'arqs': 'arq-1'}, 'not a list of strings'),
        (BindPayload, {**BIND.to_json(), 'arqs': [1]}, 'not a list of strings'),
        (BindPayload, {**BIND.to_json(), 'project': 1}, 'project is not a string'),
        (BindPayload, {**BIND.to_json(), 'generation': True}, 'not a number'),
        (ReleasePayload, {'handle': None}, 'handle is not a string'),
        (PlacementSyncPayload, {'host': 'h', 'deep': 1}, 'deep is not a boolean'),
        (
            ProgramPayload,
            {'deployable': 'd', 'image': 'i', 'shell': 'no'},
            'shell is not a boolean',
        ),
        (
            NovaEventPayload,
            {'instance': 'i', 'arqs': [], 'succeeded': 0},
            'succeeded is not a boolean',
        ),
    ],
)
def test_payload_value_of_other_type_raises(
    payload_class: type[JobPayload], stored: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InvalidJobPayload, match=reason):
        payload_class.from_json(stored)


def test_audit_payload_ignores_all_keys() -> None:
    assert AuditPayload.from_json({'deep': 1}) == AuditPayload()


@pytest.mark.parametrize(
    ('job_type', 'payload', 'key'),
    [
        (JobType.RELEASE, ReleasePayload('handle'), 'handle'),
        (JobType.PLACEMENT_SYNC, PlacementSyncPayload('compute-1'), 'compute-1'),
        (JobType.BIND, BIND, None),
        ('type-of-newer-release', BIND, None),
    ],
)
def test_job_key_is_value_of_payload(
    job_type: str, payload: JobPayload, key: str | None
) -> None:
    assert job_key(job_type, payload.to_json()) == key


def test_add_bind_generation_returns_changed_copy() -> None:
    new_job = NewJob(JobType.BIND, BindPayload('instance', (), ()).to_json(), key='k')
    changed = add_bind_generation(new_job, 5, has_alternatives=False)
    assert read_bind_generation(changed.payload) == 5
    assert read_bind_generation(new_job.payload) == 0
    assert changed.key == 'k'


@pytest.mark.parametrize(
    ('payload', 'description'),
    [
        (BIND, 'instance instance'),
        (ReleasePayload('h1'), 'handle h1'),
        (PlacementSyncPayload('compute-1'), 'host compute-1'),
        (ProgramPayload('d1', 'i1', is_shell=False), 'deployable d1'),
        (AuditPayload(), None),
    ],
)
def test_describe_payload_names_main_object(
    payload: JobPayload, description: str | None
) -> None:
    assert describe_payload(payload.to_json()) == description
