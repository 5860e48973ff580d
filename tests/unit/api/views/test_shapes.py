# SPDX-License-Identifier: Apache-2.0
"""Tests of the types of view fields."""

from cyborg_lite.api.microversion import MINIMUM, V2_4
from cyborg_lite.api.views.shapes import Shape, nullable, since, source


def test_shapes_combine_without_side_effects() -> None:
    plain = Shape(str, format='uuid')
    shape = since(V2_4, nullable(source('other', plain)))
    assert (shape.nullable, shape.optional, shape.since) == (True, False, V2_4)
    assert (shape.schema, shape.source) == ({'format': 'uuid'}, 'other')
    assert (plain.nullable, plain.since, plain.source) == (False, MINIMUM, None)
