# SPDX-License-Identifier: Apache-2.0
"""Fields that say more than their type."""

import pytest
from wsme import types
from wsme.exc import InvalidInput
from wsme.rest.json import tojson

from cyborg_lite.api.microversion import MINIMUM, V2_4
from cyborg_lite.api.views.shapes import Shape, nullable, optional, since


class View(types.Base):  # type: ignore[misc]  # untyped base
    names = nullable([str])
    counts = since(V2_4, optional({str: int}))


def test_they_are_written_as_their_types_are() -> None:
    view = View(names=['a'], counts={'b': 1})
    assert tojson(View, view) == {'names': ['a'], 'counts': {'b': 1}}
    assert tojson(View, View(names=None)) == {'names': None}


def test_they_take_what_their_types_take() -> None:
    with pytest.raises(InvalidInput):
        View(names='a')


def test_what_is_said_adds_up_and_changes_no_other_field() -> None:
    plain = Shape(str, format='uuid')
    both = since(V2_4, nullable(plain))
    assert (both.nullable, both.optional, both.since) == (True, False, V2_4)
    assert both.schema == {'format': 'uuid'}
    assert (plain.nullable, plain.since) == (False, MINIMUM)
