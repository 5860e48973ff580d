# SPDX-License-Identifier: Apache-2.0
"""Tests of the documented parameters."""

from typing import Any

from cyborg_lite.api.microversion import V2_4, V2_5
from tests.support.api.api_document import find_operation, load_document


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
