# SPDX-License-Identifier: Apache-2.0
"""Tests of the catalog of bitstreams in Glance."""

import pytest

from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.bitstreams import BitstreamNotFound
from cyborg_lite.model.bitstreams.choice import BitstreamQuery, read_region_properties
from tests.builders.bitstream_files import LARGEST, image
from tests.doubles.glance import FakeGlance


def test_catalog_without_glance_is_empty() -> None:
    catalog, region = BitstreamCatalog(None, LARGEST), read_region_properties({})
    assert catalog.rank(region) == ()
    assert catalog.list({}, region) == ()
    assert catalog.read_image_properties('x') == {}
    with pytest.raises(BitstreamNotFound, match='glance'):
        catalog.find(BitstreamQuery(name='x'), region)


def test_read_image_properties_unknown_image_raises() -> None:
    catalog = BitstreamCatalog(FakeGlance(image()), LARGEST)
    with pytest.raises(InvalidInput, match='image x does not exist'):
        catalog.read_image_properties('x')
