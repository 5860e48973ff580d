# SPDX-License-Identifier: Apache-2.0
"""Tests of errors in signed replies."""

import pytest

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.rpc.security import signing


@pytest.mark.parametrize(
    'value',
    [
        ['ErrorOfLaterRelease', {}],
        ['LOG', {}],  # a name of the module that is no class
        ['DeviceNotFound', {}],  # its text needs a field
    ],
)
def test_unknown_error_becomes_general_error(value: object) -> None:
    assert type(signing.load_error(value)) is CyborgError


def test_fields_of_other_types_become_text() -> None:
    _, fields = signing.dump_error(DeviceNotFound(uuid=ValueError('u')))
    assert fields == {'uuid': 'u'}
