# SPDX-License-Identifier: Apache-2.0
"""Single operations."""

from tests.unit.api.described import operation


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
