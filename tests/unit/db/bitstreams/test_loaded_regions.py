# SPDX-License-Identifier: Apache-2.0
"""Bitstreams of regions: recorded before each load, deleted with the device."""

import pytest
from sqlalchemy import select

from cyborg_lite.db.bitstreams import loaded_regions
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable, LoadedRegion
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.inventory.host_report import HostReport
from tests.builders.bitstream_files import OTHER_FUNCTION, bitstream
from tests.builders.fpga_reports import FACTORY, HOST, fpga_card
from tests.builders.table_rows import count_rows, read_column


@pytest.fixture
def deployable_id(database: Database) -> int:
    """Return the id of the only deployable."""
    report = HostReport(HOST, 'boot', (fpga_card(),))
    database.write(reports.store_report, report)
    return read_column(database, select(Deployable.id))[0]


def test_find_previous_load_without_bind_is_none(
    database: Database, deployable_id: int
) -> None:
    assert database.read(loaded_regions.find_previous_load, deployable_id) is None
    database.write(loaded_regions.record_loaded_bitstream, deployable_id, bitstream())
    assert database.read(loaded_regions.find_previous_load, deployable_id) is None


def test_record_bind_load_twice_keeps_first_load(
    database: Database, deployable_id: int
) -> None:
    database.write(loaded_regions.record_bind_load, deployable_id, FACTORY)
    database.write(loaded_regions.record_loaded_bitstream, deployable_id, bitstream())
    database.write(loaded_regions.record_bind_load, deployable_id, OTHER_FUNCTION)
    earlier = database.read(loaded_regions.find_previous_load, deployable_id)
    assert earlier == loaded_regions.PreviousLoad(None, FACTORY)
    database.write(loaded_regions.clear_previous_load, deployable_id)
    assert database.read(loaded_regions.find_previous_load, deployable_id) is None


def test_loaded_region_device_removed_is_deleted(
    database: Database, deployable_id: int
) -> None:
    database.write(loaded_regions.mark_unusable, deployable_id, 'x' * 1000)
    assert count_rows(database, LoadedRegion) == 1
    database.write(reports.store_report, HostReport(HOST, 'boot', ()))
    assert count_rows(database, LoadedRegion) == 0
