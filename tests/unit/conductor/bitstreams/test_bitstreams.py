# SPDX-License-Identifier: Apache-2.0
"""Tests of the catalog of bitstreams in Glance."""

import pytest

from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.bitstreams import BitstreamNotFound
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.choice import (
    BitstreamQuery,
    RegionProperties,
    read_region_properties,
)
from tests.builders.bitstream_files import (
    ARRIA10_REGION,
    IMAGE_ID,
    LARGEST,
    image,
)
from tests.doubles.glance import FakeGlance

WRONG_ID = '00000000-0000-4000-8000-000000000001'
REGION = read_region_properties(
    {
        bitstreams.VENDOR: '8086 intel',
        bitstreams.BOARD: 'PAC_ARRIA10 09c4',
        bitstreams.VERSION: '1.1.3',
        bitstreams.SHELL: f'113000200000177 {ARRIA10_REGION}',
        bitstreams.REGION: ARRIA10_REGION,
        bitstreams.FUNCTION: 'ab' * 16,
    }
)
WRONG_IMAGE = image(id=WRONG_ID, properties={'board': 'u250'})


@pytest.fixture
def glance() -> FakeGlance:
    return FakeGlance(image(), WRONG_IMAGE)


def build_catalog(glance: FakeGlance | None, *defaults: str) -> BitstreamCatalog:
    return BitstreamCatalog(glance, LARGEST, defaults)


def test_catalog_without_glance_is_empty() -> None:
    catalog = build_catalog(None)
    assert catalog.rank(REGION) == ()
    assert catalog.list({}, REGION) == ()
    assert catalog.read_image_properties('x') == {}
    with pytest.raises(BitstreamNotFound, match='glance'):
        catalog.find(BitstreamQuery(name='x'), REGION)


def test_rank_lists_fitting_images_first(glance: FakeGlance) -> None:
    fits = build_catalog(glance).rank(REGION)
    assert [fit.image.id for fit in fits] == [IMAGE_ID, WRONG_ID]
    assert [bool(fit.reasons) for fit in fits] == [False, True]


@pytest.mark.parametrize(
    ('region', 'accepted'), [(REGION, [True, False]), (None, [True, True])]
)
def test_list_describes_images_for_region(
    glance: FakeGlance, region: RegionProperties | None, accepted: list[bool]
) -> None:
    images = build_catalog(glance).list({}, region)
    assert [not item.reasons for item in images] == accepted


def test_list_applies_filters(glance: FakeGlance) -> None:
    (listed,) = build_catalog(glance).list({'board': 'u250'}, None)
    assert listed.image_uuid == WRONG_ID


def test_read_image_properties_unknown_image_raises(glance: FakeGlance) -> None:
    with pytest.raises(InvalidInput, match='image x does not exist'):
        build_catalog(glance).read_image_properties('x')
