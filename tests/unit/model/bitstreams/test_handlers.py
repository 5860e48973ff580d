# SPDX-License-Identifier: Apache-2.0
"""Tests of the handlers of bitstreams."""

import pytest

from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.choice import (
    Handlers,
    format_drivers,
    is_older,
    list_handler_mismatches,
    parse_handlers,
)
from tests.builders.bitstream_files import bitstream

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
