# SPDX-License-Identifier: Apache-2.0
"""Tests of the documented operations, parameters and responses."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cyborg_lite.api.microversion import MAXIMUM, V2_4, V2_5, Microversion
from cyborg_lite.api.openapi import document
from tests.support.api.api_document import find_operation, load_document


def test_request_body_optional_is_documented() -> None:
    needed = find_operation('post', '/accelerator_requests')['requestBody']['required']
    optional = find_operation('post', '/devices/{uuid}/enable')['requestBody'][
        'required'
    ]
    assert (needed, optional) == (True, False)


def test_security_names_tokens() -> None:
    assert find_operation('get', '')['security'] == []
    requests = '/accelerator_requests'
    documented = [
        find_operation(method, requests)['security'] for method in ('delete', 'patch')
    ]
    security: list[dict[str, list[str]]] = [{'user': []}, {'user': [], 'service': []}]
    assert documented == [security, security[1:]]


def test_operation_names_rule_and_microversion() -> None:
    documented = find_operation('get', '/services')['x-openstack']
    assert documented == {'min-ver': '2.4', 'policy': 'cyborg:service:get_all'}


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
def test_profile_schema_describes_grammar(group: dict[str, Any], fits: bool) -> None:
    schemas = document.build_document()['components']['schemas']
    schema = schemas['CreateDeviceProfileBody']
    profiles = [{'name': 'dp1', 'groups': [group]}]
    assert Draft202012Validator(schema).is_valid(profiles) is fits


@pytest.mark.parametrize(
    ('version', 'media_type'),
    [(V2_4, 'json'), (V2_5, 'json-patch+json'), (None, 'json')],
)
def test_patch_has_one_media_type(
    version: Microversion | None, media_type: str
) -> None:
    paths = document.build_document(version)['paths']
    profile = paths['/v2/device_profiles/{device_profile}']
    content = profile['patch']['requestBody']['content']
    assert list(content) == [f'application/{media_type}']
    creation = paths['/v2/device_profiles']['post']
    assert list(creation['requestBody']['content']) == ['application/json']


# The body is an object with a list of changes for each ARQ.
NO_LIST_OF_CHANGES = {
    'PATCH /v2/accelerator_requests',
    'PATCH /v2/accelerator_requests/{uuid}',
}


def test_every_patch_accepts_patch_media_type() -> None:
    exceptions = {
        f'{method.upper()} {path}'
        for path, item in document.build_document(MAXIMUM)['paths'].items()
        for method, operation in item.items()
        if method == 'patch'
        and [*operation['requestBody']['content']] != ['application/json-patch+json']
    }
    assert exceptions == NO_LIST_OF_CHANGES


def test_filters_are_pairs() -> None:
    arguments = {
        parameter.get('name'): parameter for parameter in _arguments('/deployables')
    }
    fields = arguments['filters.field']['schema']['items']['enum']
    assert {'limit', 'name', 'parent_uuid'} <= set(fields)
    assert arguments['filters.value']['schema']['type'] == 'array'
    assert 'filters.field' not in {
        parameter.get('name') for parameter in _arguments('/services')
    }


def _arguments(path: str) -> list[dict[str, Any]]:
    parameters: list[dict[str, Any]] = find_operation('get', path)['parameters']
    return parameters


def test_version_header_lists_versions() -> None:
    headers = [
        load_document(version)['components']['parameters']['OpenStack-API-Version']
        for version in (None, V2_4)
    ]
    assert headers[0]['schema']['enum'][-1] == 'accelerator latest'
    assert headers[1]['schema']['enum'] == ['accelerator 2.4']
    assert [parameter['required'] for parameter in headers] == [False, True]


def test_fields_lists_those_of_the_microversion() -> None:
    for version, has_arqs in ((V2_4, None), (V2_5, True)):
        operation = load_document(version)['paths']['/v2/devices']['get']
        names = [
            parameter['schema']['items']['enum']
            for parameter in operation['parameters']
            if parameter.get('name') == 'fields'
        ]
        assert names == [] if has_arqs is None else 'arqs' in names[0]


def test_error_responses_have_headers() -> None:
    shared = load_document(None)['components']['responses']
    assert 'Retry-After' in shared['ServiceUnavailable']['headers']
    assert 'Allow' in shared['MethodNotAllowed']['headers']
    assert 'WWW-Authenticate' in shared['Unauthorized']['headers']
