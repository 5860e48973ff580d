# SPDX-License-Identifier: Apache-2.0
"""The bitstream that is meant is found, or the reason why none is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cyborg_lite.exceptions import BitstreamNotFound, BitstreamRefused
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstream_choice import (
    Wanted,
    chosen,
    is_loaded,
    misfits,
    names_one,
    ranked,
    target,
    wanted,
)
from cyborg_lite.model.bitstreams import Image
from tests.fakes.bitstream_files import (
    ARRIA10_REGION,
    IMAGE_ID,
    LARGEST,
    OTHER_FUNCTION,
    bitstream,
    image,
)

REGION = target(
    {
        bitstreams.VENDOR: '8086 intel',
        bitstreams.BOARD: 'PAC_ARRIA10 09c4',
        bitstreams.VERSION: '1.1.3',
        bitstreams.SHELL: f'113000200000177 {ARRIA10_REGION}',
        bitstreams.REGION: ARRIA10_REGION,
        bitstreams.FUNCTION: 'ab' * 16,
    }
)


def numbered(number: int, **properties: str | None) -> Image:
    return image(id=f'00000000-0000-4000-8000-{number:012d}', properties=properties)


@pytest.mark.parametrize(
    ('group', 'expected'),
    [
        ({}, None),
        ({'accel:attach_target': 'VM', 'resources:FPGA': '1'}, None),
        ({'accel:bitstream_id': IMAGE_ID}, Wanted(image_id=IMAGE_ID)),
        ({'accel:bitstream_name': 'x'}, Wanted(name='x')),
        ({'accel:function_id': 'AB-CD'}, Wanted(function_id='abcd')),
        ({'accel:function_name': 'x'}, Wanted(function_name='x')),
    ],
)
def test_a_group_says_what_it_wants(
    group: dict[str, str], expected: Wanted | None
) -> None:
    assert wanted(group) == expected
    assert names_one(group) is (expected is not None)


def test_an_image_and_a_function_contradict_one_another() -> None:
    with pytest.raises(BitstreamRefused, match='one is enough'):
        wanted({'accel:bitstream_id': IMAGE_ID, 'accel:function_id': 'x'})


@pytest.mark.parametrize(
    ('properties', 'reason'),
    [
        ({'vendor': '10ee'}, 'It is for vendor 10ee, not 8086 or intel.'),
        ({'board': 'u250'}, 'It is for board u250, not 09c4 or pac_arria10.'),
        ({'version': '1.2'}, 'It is for version 1.2, not 1.1.3.'),
        ({'version': '1.1.30'}, 'It is for version 1.1.30, not 1.1.3.'),
        (
            {'shell_id': 'ff'},
            f'It needs shell ff, not 113000200000177 or {ARRIA10_REGION}.',
        ),
        (
            {'region_uuid': 'cd' * 16},
            f'It is for region {"cd" * 16}, not {ARRIA10_REGION}.',
        ),
    ],
)
def test_each_way_not_to_fit_has_its_reason(
    properties: dict[str, str], reason: str
) -> None:
    assert misfits(bitstream(properties=properties), REGION) == (reason,)


@pytest.mark.parametrize(
    'properties',
    [
        {},
        {'vendor': '0x8086'},
        {'board': 'pac_arria10'},
        {'version': '1.1.3'},
        {'version': '1'},
        {'shell_id': ARRIA10_REGION},
        {'shell_id': None},
        {'region_uuid': None},
    ],
)
def test_names_are_compared_and_not_spellings(
    properties: dict[str, str | None],
) -> None:
    assert misfits(bitstream(properties=properties), REGION) == ()


def test_what_is_no_fpga_takes_nothing() -> None:
    assert misfits(bitstream(), target({})) == ('The device cannot be programmed.',)


def test_loaded_is_what_we_loaded_and_the_hardware_shows() -> None:
    ours = replace(REGION, function_id=OTHER_FUNCTION, image_id=IMAGE_ID)
    assert is_loaded(bitstream(), ours)
    assert not is_loaded(bitstream(), replace(ours, image_id=None))
    assert not is_loaded(bitstream(), replace(ours, function_id=''))


def test_the_best_comes_first_and_the_refused_last_with_reasons() -> None:
    images = [
        numbered(1, board='u250'),
        numbered(2, region_uuid=None, version='1.1.3'),
        numbered(3, version='1.1'),
        numbered(4, version='1.1.3'),
        numbered(5, shell_id=None, region_uuid=None),
    ]
    found = ranked(images, REGION, LARGEST)
    assert [int(fit.image.id[-2:]) for fit in found] == [4, 3, 2, 5, 1]
    assert [bool(fit.reasons) for fit in found] == [False] * 4 + [True]


def test_what_is_loaded_already_is_best() -> None:
    loaded = numbered(9, region_uuid=None)
    region = replace(REGION, function_id=OTHER_FUNCTION, image_id=loaded.id)
    assert ranked([numbered(1), loaded], region, LARGEST)[0].image == loaded


def test_of_images_with_one_function_the_one_for_this_board_is_meant() -> None:
    images = [numbered(1, board='u250'), numbered(2)]
    asked = Wanted(function_id=OTHER_FUNCTION)
    assert chosen(asked, images, REGION, LARGEST).image_id == images[1].id


def test_several_that_fit_are_not_chosen_among() -> None:
    images = [numbered(1), numbered(2)]
    with pytest.raises(BitstreamNotFound, match='2 images fit') as caught:
        chosen(Wanted(name='nlb-0'), images, REGION, LARGEST)
    assert all(each.id in caught.value.text for each in images)


def test_none_by_that_name_is_said() -> None:
    with pytest.raises(BitstreamNotFound, match='there is no function named x'):
        chosen(Wanted(function_name='x'), [numbered(1)], REGION, LARGEST)


def test_the_only_one_that_is_meant_is_refused_with_all_its_reasons() -> None:
    wrong = numbered(1, board='u250', vendor='10ee')
    with pytest.raises(BitstreamRefused, match=r'vendor 10ee.*board u250'):
        chosen(Wanted(image_id=wrong.id), [wrong], REGION, LARGEST)


def test_of_several_that_are_refused_each_has_its_reason() -> None:
    images = [numbered(1, board='u250'), numbered(2, vendor='10ee')]
    with pytest.raises(BitstreamNotFound, match=r'board u250.*vendor 10ee'):
        chosen(Wanted(name='nlb-0'), images, REGION, LARGEST)


@given(some.permutations([1, 2, 3, 4, 5, 6]))
def test_the_order_of_images_changes_nothing(order: list[int]) -> None:
    versions = {1: '1', 2: '1.1', 3: '1.1.3', 4: '9', 5: 'rc.1', 6: '1.1'}
    images = [numbered(n, version=versions[n]) for n in order]
    expected = ranked(sorted(images, key=lambda each: each.id), REGION, LARGEST)
    assert ranked(images, REGION, LARGEST) == expected
