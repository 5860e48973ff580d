# SPDX-License-Identifier: Apache-2.0
"""A closed region stays closed until something, or a new shell, is loaded."""

from pathlib import Path

import pytest

from cyborg_lite.agent.loaded import LoadedRegions
from cyborg_lite.model.inventory import Finding
from tests.fakes.bitstream_files import bitstream
from tests.fakes.fpga import HOST, fpga_card

CARD = f'{HOST}_0000:5e:00.0'


def reserved(regions: LoadedRegions) -> list[int]:
    """Of each region of a card with two, as it is reported."""
    card = fpga_card(regions=2)
    found = regions.amended(Finding(card.address, '', '', '', '', card))
    assert found.device is not None
    return [part.reserved for part in found.device.root.parts]


@pytest.fixture
def regions(tmp_path: Path) -> LoadedRegions:
    made = LoadedRegions(tmp_path)
    made.failed(f'{CARD}_region0', 'CRC error')
    made.failed(f'{HOST}_0000:5f:00.0_region0', 'CRC error')
    return made


def test_a_closed_region_is_reserved_over_a_restart(
    regions: LoadedRegions, tmp_path: Path
) -> None:
    assert reserved(regions) == [1, 0]
    assert reserved(LoadedRegions(tmp_path)) == [1, 0]


def test_a_load_opens_its_region(regions: LoadedRegions, tmp_path: Path) -> None:
    regions.loaded(f'{CARD}_region0', bitstream())
    assert reserved(LoadedRegions(tmp_path)) == [0, 0]


def test_a_shell_opens_all_regions_of_its_card(
    regions: LoadedRegions, tmp_path: Path
) -> None:
    regions.failed(f'{CARD}_region1', 'CRC error')
    regions.emptied(CARD)
    assert reserved(regions) == reserved(LoadedRegions(tmp_path)) == [0, 0]
    assert '5f:00.0' in (tmp_path / 'loaded.json').read_text()
