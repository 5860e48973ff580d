# SPDX-License-Identifier: Apache-2.0
"""Tests of the types of view fields."""

import pytest
from wsme import types
from wsme.exc import InvalidInput
from wsme.rest.json import tojson

from cyborg_lite.api.microversion import MINIMUM, V2_4
from cyborg_lite.api.views.shapes import Shape, nullable, optional, since


class View(types.Base):  # type: ignore[misc]  # untyped base
    names = nullable([str])
    counts = since(V2_4, optional({str: int}))


def test_shapes_are_written_like_their_type() -> None:
    view = View(names=['a'], counts={'b': 1})
    assert tojson(View, view) == {'names': ['a'], 'counts': {'b': 1}}
    assert tojson(View, View(names=None)) == {'names': None}


def test_shapes_validate_like_their_type() -> None:
    with pytest.raises(InvalidInput):
        View(names='a')


def test_shapes_combine_without_side_effects() -> None:
    plain = Shape(str, format='uuid')
    shape = since(V2_4, nullable(plain))
    assert (shape.nullable, shape.optional, shape.since) == (True, False, V2_4)
    assert shape.schema == {'format': 'uuid'}
    assert (plain.nullable, plain.since) == (False, MINIMUM)
