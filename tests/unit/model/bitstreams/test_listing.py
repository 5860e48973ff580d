# SPDX-License-Identifier: Apache-2.0
"""Tests of the filters and the description of bitstream images."""

from cyborg_lite.model.bitstreams import choice
from cyborg_lite.model.bitstreams.listing import describe_image, filter_images
from tests.builders.bitstream_files import (
    ARRIA10_REGION,
    LARGEST,
    OTHER_FUNCTION,
    image,
)


def test_filter_images_without_property_matches_nothing() -> None:
    incomplete = image(properties={'region_uuid': None, 'function_uuid': None})
    assert filter_images([incomplete], {'region': ARRIA10_REGION}) == ()
    assert filter_images([incomplete], {'function': OTHER_FUNCTION}) == ()


def test_describe_image_shows_known_properties_truncated() -> None:
    unusual = image(properties={'colour': 'red', 'description': 'x' * 300})
    (fit,) = choice.rank_images([unusual], None, LARGEST)
    details = describe_image(fit)
    assert details.image_uuid == unusual.id
    assert details.properties['bs-name'] == 'nlb-0'
    assert 'colour' not in details.properties
    assert len(details.properties['description']) < 100
    (reason,) = details.reasons
    assert 'is not a line of at most 255 characters' in reason
