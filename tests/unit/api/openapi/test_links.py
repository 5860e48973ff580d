# SPDX-License-Identifier: Apache-2.0
"""Tests of the links between operations."""

import pytest

from tests.support.api.api_document import find_operation


@pytest.mark.parametrize(
    ('method', 'path', 'status', 'target', 'uuid'),
    [
        (
            'post',
            '/device_profiles',
            '201',
            'show_device_profile',
            {'device_profile': '$response.body#/uuid'},
        ),
        (
            'post',
            '/accelerator_requests',
            '201',
            'delete_accelerator_request',
            {'uuid': '$response.body#/arqs/0/uuid'},
        ),
        (
            'get',
            '/devices',
            '200',
            'disable_device',
            {'uuid': '$response.body#/devices/0/uuid'},
        ),
        (
            'get',
            '/deployables',
            '200',
            'update_deployable_program',
            {
                'uuid': '$response.body#/deployables/0/uuid',
                'same_uuid': '$response.body#/deployables/0/uuid',
            },
        ),
    ],
)
def test_link_leads_to_next_operation(
    method: str, path: str, status: str, target: str, uuid: dict[str, str]
) -> None:
    link = find_operation(method, path)['responses'][status]['links'][target]
    assert link == {'operationId': target, 'parameters': uuid}
