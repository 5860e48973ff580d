# SPDX-License-Identifier: Apache-2.0
"""Tests of the documented parameters."""

from typing import Any

from cyborg_lite.api.microversion import V2_4
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
