# SPDX-License-Identifier: Apache-2.0
"""Single operations."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

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


@pytest.mark.parametrize(
    ('group', 'fits'),
    [
        ({'resources:FPGA': 1, 'trait:CUSTOM_A': 'required', 'accel:b': ''}, True),
        ({'resources: fpga ': '1', 'trait: custom-a': 'forbidden'}, True),
        ({'resources:FPGA': 1, 'accel:b': None}, True),
        ({'resources:FPGA': 0}, False),
        ({'resources:FPGA': 'x'}, False),
        ({'resources:FPGA': None}, False),
        ({'resources:FPGA': 1, 'trait:CUSTOM_A': 'x'}, False),
        ({'resources:FPGA': 1, 'accel:b': 5}, False),
        ({'resources:FPGA': 1, 'accel:a.b': ''}, False),
        ({'resources:FPGA': 1, 'colour:red': ''}, False),
    ],
)
def test_readers_are_told_the_grammar_of_a_device_profile(
    group: dict[str, Any], fits: bool
) -> None:
    body = operation('post', '/device_profiles')['requestBody']
    schema = body['content']['application/json']['schema']
    wanted = [{'name': 'dp1', 'groups': [group]}]
    assert Draft202012Validator(schema).is_valid(wanted) is fits
