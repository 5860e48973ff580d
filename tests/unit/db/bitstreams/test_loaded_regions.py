# SPDX-License-Identifier: Apache-2.0
"""Bitstreams of regions: recorded before each load, deleted with the device."""

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import attach_handles
from cyborg_lite.db.bitstreams import loaded_regions, programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable, LoadedRegion
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.inventory.host_report import HostReport
from tests.builders.bitstream_files import IMAGE_ID, OTHER_FUNCTION, bitstream
from tests.builders.fpga_reports import FACTORY, HOST, fpga_card
from tests.doubles.fpga_cloud import Cloud


@pytest.fixture
def deployable_id(database: Database) -> int:
    """Return the id of the only deployable."""
    report = HostReport(HOST, 'boot', (fpga_card(),))
    database.write(reports.store_report, report)
    return database.read(_read_deployable_id)


def _read_deployable_id(session: Session) -> int:
    return session.scalars(select(Deployable.id)).one()


def _count_rows(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(LoadedRegion)) or 0


def test_find_previous_load_without_bind_is_none(
    database: Database, deployable_id: int
) -> None:
    assert database.read(loaded_regions.find_previous_load, deployable_id) is None
    database.write(loaded_regions.record_loaded_bitstream, deployable_id, bitstream())
    assert database.read(loaded_regions.find_previous_load, deployable_id) is None


def test_find_previous_load_returns_recorded_bitstream(
    database: Database, deployable_id: int
) -> None:
    database.write(loaded_regions.record_loaded_bitstream, deployable_id, bitstream())
    database.write(loaded_regions.record_bind_load, deployable_id, OTHER_FUNCTION)
    earlier = database.read(loaded_regions.find_previous_load, deployable_id)
    assert earlier is not None
    assert earlier.bitstream == bitstream()
    assert earlier.function_id == OTHER_FUNCTION


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
    assert database.read(_count_rows) == 1
    database.write(reports.store_report, HostReport(HOST, 'boot', ()))
    assert database.read(_count_rows) == 0


def test_handle_after_bind_has_load_for_reboot(database: Database) -> None:
    cloud = Cloud(database)
    cloud.plug(fpga_card(regions=2))
    name = f'{HOST}_0000:5e:00.0_region1'
    job = cloud.accept_bind({'accel:bitstream_id': IMAGE_ID}, name)
    cloud.binder.run(job)
    (handle,) = database.read(
        attach_handles.list_handles_of_arqs, job.payload['arq_uuids']
    )
    assert handle.changed
    assert handle.load is not None
    order = handle.load
    assert (order.address, order.region_suffix) == ('0000:5e:00.0', '_region1')
    assert handle.load.bitstream.image_id == IMAGE_ID
    region = database.read(programming.find_region_of_handle, handle.uuid)
    assert region is not None
    assert region.name == name
