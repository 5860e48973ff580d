# SPDX-License-Identifier: Apache-2.0
"""Images are picked by what they say, and shown without what nobody needs."""

from uuid import UUID

import pytest

from cyborg_lite.model import bitstream_choice
from cyborg_lite.model.bitstream_list import listed, picked
from tests.fakes.bitstream_files import (
    ARRIA10_REGION,
    LARGEST,
    OTHER_FUNCTION,
    image,
)


@pytest.mark.parametrize(
    ('filters', 'found'),
    [
        ({}, True),
        ({'vendor': 'INTEL'}, True),
        ({'vendor': 'xilinx'}, False),
        ({'board': 'pac_arria10', 'vendor': 'intel'}, True),
        ({'board': 'pac_arria10', 'vendor': 'xilinx'}, False),
        ({'region': ARRIA10_REGION}, True),
        ({'region': str(UUID(ARRIA10_REGION))}, True),
        ({'function': OTHER_FUNCTION.upper()}, True),
        ({'function': 'loopback'}, True),
        ({'function': 'ab' * 16}, False),
        ({'board': ''}, False),
    ],
)
def test_an_image_is_picked_by_what_it_says(
    filters: dict[str, str], found: bool
) -> None:
    assert bool(picked([image()], filters)) is found


def test_what_an_image_does_not_say_fits_no_filter() -> None:
    nameless = image(properties={'region_uuid': None, 'function_uuid': None})
    assert picked([nameless], {'region': ARRIA10_REGION}) == ()
    assert picked([nameless], {'function': OTHER_FUNCTION}) == ()


def test_only_what_is_known_is_shown_and_cut_short() -> None:
    odd = image(properties={'colour': 'red', 'description': 'x' * 300})
    (fit,) = bitstream_choice.ranked([odd], None, LARGEST)
    shown = listed(fit)
    assert shown.image_uuid == odd.id
    assert shown.properties['bs-name'] == 'nlb-0'
    assert 'colour' not in shown.properties
    assert len(shown.properties['description']) < 100
    (reason,) = shown.reasons
    assert 'is not a line of at most 255 characters' in reason


def test_all_that_is_wrong_is_told_at_once() -> None:
    bad = image(tags=(), size=0, properties={'bs-uuid': None, 'vendor': '../x'})
    (fit,) = bitstream_choice.ranked([bad], None, LARGEST)
    said = ' '.join(listed(fit).reasons)
    for part in ('not tagged FPGA', 'It is empty', 'lacks bs-uuid', 'Its vendor ../x'):
        assert part in said


def test_the_key_of_older_images_is_shown_as_the_function() -> None:
    older = image(
        properties={'function_uuid': None, 'accel:function_id': OTHER_FUNCTION}
    )
    (fit,) = bitstream_choice.ranked([older], None, LARGEST)
    assert listed(fit).properties['function_uuid'] == OTHER_FUNCTION
