# SPDX-License-Identifier: Apache-2.0
"""Tests of the schema of changes of hardware."""

from typing import Any, Final

import pytest

from cyborg_lite.api.schemas.forecasts import FORECAST
from cyborg_lite.exceptions import InvalidInput

NEW: Final = {'hostname': 'compute-1', 'resources': {'PGPU': 1}}
FULL: Final = {
    'traits': ['CUSTOM_T4'] * 100,
    'attributes': {'memory_mib': 1, 'model': 'T4', 'same_card': True},
    'attach_handle_type': 'MDEV',
    'count': 100,
}


def test_examples_match_schema() -> None:
    for example in FORECAST.document['examples']:
        FORECAST.check(example)


@pytest.mark.parametrize(
    'body',
    [
        {'changes': []},
        {'changes': [{**NEW, **FULL}] * 100},
        {'changes': [], 'profiles': ['p'] * 100},
        {'changes': [], 'profiles': [], 'groups': [{'resources:PGPU': '1'}]},
    ],
)
def test_valid_body_is_accepted(body: Any) -> None:
    FORECAST.check(body)


@pytest.mark.parametrize(
    'body',
    [
        None,
        [],
        {},
        {'changes': [], 'profile': 'p'},
        {'changes': [NEW] * 101},
        {'changes': [], 'profiles': ['p'] * 101},
        {'changes': [], 'profiles': ['']},
    ],
)
def test_invalid_body_is_refused(body: Any) -> None:
    with pytest.raises(InvalidInput):
        FORECAST.check(body)


@pytest.mark.parametrize(
    'fields',
    [
        {'hostname': 'h' * 256},
        {'device': 5},
        {'mode': ''},
        {'remove': False},
        {'resources': {}},
        {'resources': {'PGPU': 0}},
        {'resources': {'PGPU': 65537}},
        {'resources': dict.fromkeys('abcdefghi', 1)},
        {'traits': ['CUSTOM_T4'] * 101},
        {'traits': ['custom_t4']},
        {'attributes': {'memory_mib': 1.5}},
        {'attributes': dict.fromkeys(map(str, range(65)), 1)},
        {'attach_handle_type': 'TYPE'},
        {'count': 0},
        {'count': 101},
        {'colour': 'red'},
    ],
)
def test_invalid_change_is_refused(fields: dict[str, Any]) -> None:
    FORECAST.check({'changes': [NEW]})
    with pytest.raises(InvalidInput):
        FORECAST.check({'changes': [{**NEW, **fields}]})
