# SPDX-License-Identifier: Apache-2.0
"""Tests of the table of models."""

import re

import pytest

from cyborg_lite.drivers.nvidia.models import (
    CARDS,
    MEMORY,
    MODELS,
    NVSWITCHES,
    may_have_nvlink_fabric,
)


def test_memory_agrees_with_size_in_name() -> None:
    sizes_in_names = {
        device: int(size[1])
        for device, name in MODELS.items()
        if (size := re.search(r' (\d+)GB$', name)) and device in MEMORY
    }
    assert len(sizes_in_names) > 4
    assert sizes_in_names.items() <= MEMORY.items()


def test_device_ids_are_four_hex_digits() -> None:
    """sysfs has lower case; another form would never match."""
    ids = [*CARDS, *NVSWITCHES]
    assert [item for item in ids if not re.fullmatch('[0-9a-f]{4}', item)] == []


@pytest.mark.parametrize(
    ('device', 'expected'),
    [('2330', True), ('2331', False), ('2321', False), ('27b8', False), ('2bff', True)],
)
def test_nvlink_fabric_needs_sxm_or_unknown_card(device: str, expected: bool) -> None:
    assert may_have_nvlink_fabric(device) is expected
