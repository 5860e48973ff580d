# SPDX-License-Identifier: Apache-2.0
"""Tests of deployables in responses."""

import json
from datetime import UTC, datetime

from cyborg_lite.api.views.deployables import DeployableList, DeployableView
from cyborg_lite.model.devices.devices import Attribute, DeployableRecord
from tests.builders.api_calls import render

UUID = '5c9a477a-d3d4-426a-9e9c-b2660917780e'
CREATED_AT = datetime(2026, 11, 21, tzinfo=UTC)
DEPLOYABLE = DeployableRecord(
    id=3,
    uuid=UUID,
    device_id=1,
    parent_id=2,
    root_id=2,
    name='compute-1_0000:3b:00.0_region0',
    num_accelerators=1,
    rp_uuid=None,
    driver_name='NVIDIA',
    bitstream_id=None,
    created_at=CREATED_AT,
    attributes=(
        Attribute('u1', 3, 'rc', 'FPGA', CREATED_AT),
        Attribute('u2', 3, 'traits1', 'CUSTOM_A', CREATED_AT),
    ),
)


def test_deployable_view_lists_attributes_as_json_text() -> None:
    body = render(DeployableView(DEPLOYABLE))
    assert json.loads(body['attributes_list']) == [
        {'rc': 'FPGA'},
        {'traits1': 'CUSTOM_A'},
    ]


def test_deployable_view_has_self_and_bookmark_links() -> None:
    body = render(DeployableView(DEPLOYABLE))
    assert body['links'] == [
        {'href': f'http://api/v2/deployables/{UUID}', 'rel': 'self'},
        {'href': f'http://api/deployables/{UUID}', 'rel': 'bookmark'},
    ]


def test_deployable_view_hides_internal_id() -> None:
    body = render(DeployableView(DEPLOYABLE))
    assert 'id' not in body
    assert (body['device_id'], body['parent_id'], body['root_id']) == (1, 2, 2)
    assert body['rp_uuid'] is None


def test_deployable_list_contains_all_deployables() -> None:
    body = render(DeployableList([DEPLOYABLE] * 2))
    assert body.keys() == {'deployables'}
    assert len(body['deployables']) == 2
