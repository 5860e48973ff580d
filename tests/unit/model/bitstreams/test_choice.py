# SPDX-License-Identifier: Apache-2.0
"""Tests of the choice of a bitstream for a group, a region and its handlers."""

from dataclasses import replace

import pytest

from cyborg_lite.errors.bitstreams import BitstreamNotFound, BitstreamRefused
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Image
from cyborg_lite.model.bitstreams.choice import (
    BitstreamQuery,
    Handlers,
    choose_bitstream,
    format_drivers,
    is_loaded,
    is_older,
    list_handler_mismatches,
    list_mismatches,
    parse_handlers,
    parse_query,
    rank_images,
    read_region_properties,
)
from cyborg_lite.model.profiles.device_profiles import Group
from tests.builders.bitstream_files import (
    ARRIA10_REGION,
    IMAGE_ID,
    LARGEST,
    OTHER_FUNCTION,
    bitstream,
    image,
)

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


def build_image(number: int, **properties: str | None) -> Image:
    return image(id=f'00000000-0000-4000-8000-{number:012d}', properties=properties)


@pytest.mark.parametrize(
    ('group', 'expected'),
    [
        ({}, None),
        ({'accel:attach_target': 'VM', 'resources:FPGA': '1'}, None),
        ({'accel:bitstream_id': IMAGE_ID}, BitstreamQuery(image_id=IMAGE_ID)),
        ({'accel:bitstream_name': 'x'}, BitstreamQuery(name='x')),
        ({'accel:function_id': 'AB-CD'}, BitstreamQuery(function_id='abcd')),
        ({'accel:function_name': 'x'}, BitstreamQuery(function_name='x')),
    ],
)
def test_parse_query_reads_accel_keys(
    group: dict[str, str], expected: BitstreamQuery | None
) -> None:
    assert parse_query(Group.parse(group)) == expected
    assert Group.parse(group).requests_bitstream is (expected is not None)


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
def test_list_mismatches_names_each_mismatch(
    properties: dict[str, str], reason: str
) -> None:
    assert list_mismatches(bitstream(properties=properties), REGION) == (reason,)


def test_is_loaded_requires_image_and_function() -> None:
    loaded_region = replace(REGION, function_id=OTHER_FUNCTION, image_id=IMAGE_ID)
    assert is_loaded(bitstream(), loaded_region)
    assert not is_loaded(bitstream(), replace(loaded_region, image_id=None))
    assert not is_loaded(bitstream(), replace(loaded_region, function_id=''))


def test_rank_images_orders_best_fit_first_refused_last() -> None:
    images = [
        build_image(1, board='u250'),
        build_image(2, region_uuid=None, version='1.1.3'),
        build_image(3, version='1.1'),
        build_image(4, version='1.1.3'),
        build_image(5, shell_id=None, region_uuid=None),
    ]
    fits = rank_images(images, REGION, LARGEST)
    assert [int(fit.image.id[-2:]) for fit in fits] == [4, 3, 2, 5, 1]
    assert [bool(fit.reasons) for fit in fits] == [False] * 4 + [True]


def test_rank_images_prefers_loaded_image() -> None:
    loaded = build_image(9, region_uuid=None)
    region = replace(REGION, function_id=OTHER_FUNCTION, image_id=loaded.id)
    assert rank_images([build_image(1), loaded], region, LARGEST)[0].image == loaded


def test_choose_bitstream_by_function_selects_image_for_board() -> None:
    images = [build_image(1, board='u250'), build_image(2)]
    query = BitstreamQuery(function_id=OTHER_FUNCTION)
    assert choose_bitstream(query, images, REGION, LARGEST).image_id == images[1].id


@pytest.mark.parametrize('name', ['nlb-0', 'loopback.gbs'])
def test_choose_bitstream_accepts_both_names(name: str) -> None:
    images = [image(name='loopback.gbs')]
    query = BitstreamQuery(name=name)
    assert choose_bitstream(query, images, REGION, LARGEST).image_id == IMAGE_ID
    with pytest.raises(BitstreamNotFound, match='there is no bitstream loopback'):
        choose_bitstream(BitstreamQuery(name='loopback'), images, REGION, LARGEST)


def test_choose_bitstream_refused_images_list_reason_of_each() -> None:
    images = [build_image(1, board='u250'), build_image(2, vendor='10ee')]
    with pytest.raises(BitstreamNotFound, match=r'board u250.*vendor 10ee'):
        choose_bitstream(BitstreamQuery(name='nlb-0'), images, REGION, LARGEST)


def test_choose_bitstream_without_match_raises() -> None:
    with pytest.raises(BitstreamNotFound, match='there is no function named x'):
        choose_bitstream(
            BitstreamQuery(function_name='x'), [build_image(1)], REGION, LARGEST
        )


def test_choose_bitstream_refused_image_lists_all_reasons() -> None:
    image = build_image(1, board='u250', vendor='10ee')
    with pytest.raises(BitstreamRefused, match=r'vendor 10ee.*board u250'):
        choose_bitstream(BitstreamQuery(image_id=image.id), [image], REGION, LARGEST)


# --- handlers ---


HANDLERS = Handlers(('gbs',), {'dfl-pci': '6.8', 'intel-fpga-pci': ''}, ('intel',))


def test_parse_handlers_reads_formatted_drivers() -> None:
    attributes = {
        bitstreams.TYPES: 'gbs',
        bitstreams.DRIVERS: format_drivers(HANDLERS.drivers),
        bitstreams.SETUP_ROLES: 'intel',
    }
    assert parse_handlers(attributes) == HANDLERS


def test_handlers_of_earlier_agent_match_all() -> None:
    unknown_type = bitstream(
        properties={'type': 'x', 'driver': 'y', 'driver_ver': '99'}
    )
    assert list(list_handler_mismatches(unknown_type, parse_handlers({}))) == []


def test_list_handler_mismatches_names_all_reasons() -> None:
    image = bitstream(properties={'type': 'x', 'driver': 'y'})
    assert list(list_handler_mismatches(image, HANDLERS)) == [
        'Its type x is unknown; the card loads gbs.',
        'Its driver y is unknown; the card has dfl-pci, intel-fpga-pci.',
    ]


def test_list_handler_mismatches_unknown_version_fits() -> None:
    image = bitstream(properties={'driver': 'intel-fpga-pci', 'driver_ver': '99'})
    assert list(list_handler_mismatches(image, HANDLERS)) == []


@pytest.mark.parametrize(
    ('actual', 'required', 'expected'),
    [
        ('6.8.0-45-generic', '6.10', True),
        ('6.10', '6.8', False),
        ('2.0', '2', False),
        ('2', '2.0.1', True),
        ('2.0', 'newest', False),
        ('rc1', '1', True),
    ],
)
def test_is_older_compares_numbers(actual: str, required: str, expected: bool) -> None:
    assert is_older(actual, required) is expected
