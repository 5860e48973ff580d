# SPDX-License-Identifier: Apache-2.0
"""Links from one operation to those that follow."""

import pytest

from tests.unit.api.described import operation


@pytest.mark.parametrize(
    ('method', 'path', 'status', 'target', 'uuid'),
    [
        (
            'post',
            '/device_profiles',
            '201',
            'get_v2_device_profiles_device_profile',
            {'device_profile': '$response.body#/uuid'},
        ),
        (
            'post',
            '/accelerator_requests',
            '201',
            'delete_v2_accelerator_requests_uuid',
            {'uuid': '$response.body#/arqs/0/uuid'},
        ),
        (
            'get',
            '/devices',
            '200',
            'post_v2_devices_uuid_disable',
            {'uuid': '$response.body#/devices/0/uuid'},
        ),
        (
            'get',
            '/deployables',
            '200',
            'patch_v2_deployables_uuid_program_same_uuid',
            {
                'uuid': '$response.body#/deployables/0/uuid',
                'same_uuid': '$response.body#/deployables/0/uuid',
            },
        ),
    ],
)
def test_an_answer_leads_to_what_can_be_done_next(
    method: str, path: str, status: str, target: str, uuid: dict[str, str]
) -> None:
    link = operation(method, path)['responses'][status]['links'][target]
    assert link == {'operationId': target, 'parameters': uuid}
