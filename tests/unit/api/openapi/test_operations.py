# SPDX-License-Identifier: Apache-2.0
"""Single operations, and the links between them."""

from typing import Any

import pytest

from tests.unit.api.described import document_of


def operation(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = document_of(None)['paths'][f'/v2{path}'][method]
    return found


@pytest.mark.parametrize(
    ('method', 'path', 'codes'),
    [
        ('get', '', '200 406'),
        ('get', '/devices', '200 400 401 403 406 503'),
        ('get', '/accelerator_requests', '200 400 401 403 406 423 503'),
        (
            'post',
            '/device_profiles',
            '201 400 401 403 406 409 413 415 503',
        ),
        (
            'patch',
            '/device_profiles/{device_profile}',
            '200 400 401 403 404 405 406 409 413 415 503',
        ),
        ('delete', '/attributes/{uuid}', '204 400 401 403 404 406 503'),
    ],
)
def test_all_statuses_are_there(method: str, path: str, codes: str) -> None:
    assert ' '.join(operation(method, path)['responses']) == codes


def test_a_body_may_be_left_out_where_nobody_needs_one() -> None:
    needed = operation('post', '/accelerator_requests')['requestBody']['required']
    optional = operation('post', '/devices/{uuid}/enable')['requestBody']['required']
    assert (needed, optional) == (True, False)


def test_tokens_are_named() -> None:
    assert operation('get', '')['security'] == []
    requests = '/accelerator_requests'
    said = [operation(method, requests)['security'] for method in ('delete', 'patch')]
    either: list[dict[str, list[str]]] = [{'user': []}, {'user': [], 'service': []}]
    assert said == [either, either[1:]]


def test_an_operation_names_its_rule_and_its_microversion() -> None:
    said = operation('get', '/services')['x-openstack']
    assert said == {'min-ver': '2.4', 'policy': 'cyborg:service:get_all'}


def test_filters_are_pairs() -> None:
    arguments = {one.get('name'): one for one in _arguments('/deployables')}
    fields = arguments['filters.field']['schema']['items']['enum']
    assert {'limit', 'name', 'parent_uuid'} <= set(fields)
    assert arguments['filters.value']['schema']['type'] == 'array'
    assert 'filters.field' not in {one.get('name') for one in _arguments('/services')}


def _arguments(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = operation('get', path)['parameters']
    return found


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
