# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of bodies of attributes."""

from typing import Any

import pytest

from cyborg_lite.api.schemas.attributes import CREATE
from cyborg_lite.errors.base import InvalidInput

BODY = {'deployable_id': 1, 'key': 'rack', 'value': 'r17'}


@pytest.mark.parametrize(
    'body', [BODY, {'attribute': BODY}, {**BODY, 'deployable_id': 'uuid'}]
)
def test_create_accepts_object_with_or_without_wrapper(body: Any) -> None:
    CREATE.check(body)


@pytest.mark.parametrize(
    'change',
    [
        {'key': ''},
        {'key': 'k' * 256},
        {'value': ''},
        {'value': 7},
        {'value': 'v' * 1025},
    ],
)
def test_create_invalid_value_is_refused(change: dict[str, Any]) -> None:
    for body in ({**BODY, **change}, {'attribute': {**BODY, **change}}):
        with pytest.raises(InvalidInput):
            CREATE.check(body)


def test_create_requires_all_keys() -> None:
    for key in BODY:
        body = {name: value for name, value in BODY.items() if name != key}
        with pytest.raises(InvalidInput, match=key):
            CREATE.check(body)
