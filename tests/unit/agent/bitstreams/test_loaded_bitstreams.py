# SPDX-License-Identifier: Apache-2.0
"""Tests of the record of loaded bitstreams and closed regions."""

from pathlib import Path

import pytest

from cyborg_lite.agent.bitstreams.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.builders.fpga_reports import HOST, fpga_card

CARD = f'{HOST}_0000:5e:00.0'


def list_reserved(regions: LoadedBitstreams) -> list[int]:
    """Return the reserved amount of each region of a card with two regions."""
    card = fpga_card(regions=2)
    result = regions.amend(DiscoveryResult(card.control_address, '', '', '', '', card))
    assert result.device is not None
    return [child.reserved for child in result.device.root.children]


@pytest.fixture
def regions(tmp_path: Path) -> LoadedBitstreams:
    loaded_bitstreams = LoadedBitstreams(tmp_path)
    loaded_bitstreams.record_failure(f'{CARD}_region0', 'CRC error')
    loaded_bitstreams.record_failure(f'{HOST}_0000:5f:00.0_region0', 'CRC error')
    return loaded_bitstreams


def test_remove_regions_opens_all_regions_of_card(
    regions: LoadedBitstreams, tmp_path: Path
) -> None:
    regions.record_failure(f'{CARD}_region1', 'CRC error')
    regions.remove_regions(CARD)
    assert list_reserved(regions) == list_reserved(LoadedBitstreams(tmp_path)) == [0, 0]
    assert '5f:00.0' in (tmp_path / 'loaded.json').read_text()
