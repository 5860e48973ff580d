# SPDX-License-Identifier: Apache-2.0
"""Parameters of operations."""

from typing import Any

from cyborg_lite.api.microversion import V2_4
from tests.unit.api.described import document_of, operation


def test_filters_are_pairs() -> None:
    arguments = {one.get('name'): one for one in _arguments('/deployables')}
    fields = arguments['filters.field']['schema']['items']['enum']
    assert {'limit', 'name', 'parent_uuid'} <= set(fields)
    assert arguments['filters.value']['schema']['type'] == 'array'
    assert 'filters.field' not in {one.get('name') for one in _arguments('/services')}


def _arguments(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = operation('get', path)['parameters']
    return found


def test_all_versions_can_be_asked_for_or_the_one() -> None:
    spoken = [
        document_of(version)['components']['parameters']['OpenStack-API-Version']
        for version in (None, V2_4)
    ]
    assert spoken[0]['schema']['enum'][-1] == 'accelerator latest'
    assert spoken[1]['schema']['enum'] == ['accelerator 2.4']
    assert [one['required'] for one in spoken] == [False, True]
