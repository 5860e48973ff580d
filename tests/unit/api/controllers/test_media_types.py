# SPDX-License-Identifier: Apache-2.0
"""Tests of ``application/json-patch+json`` bodies, and of caches of reads."""

from typing import Any

import pytest

from cyborg_lite.model.operations import OperationKind
from tests.builders.device_rows import add_deployable, add_device
from tests.builders.job_records import build_operation
from tests.builders.patches import build_program_patch
from tests.support.api.conversation import Client

PATCH = {'Content-Type': 'application/json-patch+json'}


@pytest.fixture
def paths(client: Client) -> dict[str, Any]:
    """Return patches by the paths that accept them."""
    client.create_profile('dp1')
    device = add_device(client.conductor.database).uuid
    record = add_deployable(client.conductor.database)
    client.conductor.answers['start_programming'] = build_operation(
        OperationKind.PROGRAM, parameters={'image_uuid': record.uuid}
    )
    deployable = record.uuid
    status = {'op': 'replace', 'path': '/status', 'value': 'maintaining'}
    enabled = {'op': 'replace', 'path': '/enabled', 'value': False}
    return {
        '/device_profiles/dp1': [enabled],
        f'/devices/{device}': [status],
        f'/deployables/{deployable}/program': build_program_patch(),
    }


def test_patch_media_type_is_accepted(client: Client, paths: dict[str, Any]) -> None:
    for path, body in paths.items():
        old = client.at('2.4').send('PATCH', path, body, headers=PATCH)
        assert old.status == 415
        answer = client.at('2.5').send('PATCH', path, body, headers=PATCH)
        assert answer.status in (200, 202)


def test_patch_media_type_is_refused_for_other_bodies(client: Client) -> None:
    body = {'projects': ['a' * 32]}
    client.create_profile('dp1')
    path = '/device_profiles/dp1/access'
    assert client.at('2.5').send('POST', path, body, headers=PATCH).status == 415


@pytest.mark.parametrize(
    ('version', 'method', 'path', 'value'),
    [
        ('2.5', 'GET', '/devices', 'private, no-cache'),
        ('2.5', 'HEAD', '/devices', 'private, no-cache'),
        ('2.4', 'GET', '/devices', None),
        ('2.5', 'GET', '/devices?colour=red', None),
        ('2.5', 'DELETE', '/device_profiles/dp1', None),
    ],
)
def test_successful_reads_have_cache_control(
    client: Client, version: str, method: str, path: str, value: str | None
) -> None:
    client.create_profile('dp1')
    answer = client.at(version).send(method, path)
    assert answer.headers.get('Cache-Control') == value


def test_unknown_accel_key_is_refused_since_2_6(client: Client) -> None:
    groups: Any = [{'resources:FPGA': '1', 'accel:bitsream_id': 'a'}]
    body = [{'name': 'dp2', 'groups': groups}]
    answer = client.at('2.6').post('/device_profiles', body)
    assert answer.status == 400
    assert 'did you mean accel:bitstream_id?' in answer.fault
    assert client.at('2.5').post('/device_profiles', body).status == 201
    patch: Any = [{'op': 'replace', 'path': '/groups', 'value': groups}]
    assert client.at('2.6').patch('/device_profiles/dp2', patch).status == 400
    # The stored key stays valid while other fields change.
    patch[0] |= {'path': '/enabled', 'value': False}
    assert client.at('2.6').patch('/device_profiles/dp2', patch).status == 200


@pytest.mark.parametrize('key', ['selector', 'video_ram', 'cleaning', 'function_uuid'])
def test_known_accel_key_is_no_unknown_key(client: Client, key: str) -> None:
    groups = [{'resources:FPGA': '1', f'accel:{key}': 'never'}]
    body = [{'name': 'dp2', 'groups': groups}]
    answer = client.at('2.6').post('/device_profiles', body)
    assert answer.status == 201 or 'no known key' not in answer.fault
