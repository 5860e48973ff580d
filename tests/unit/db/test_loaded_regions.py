# SPDX-License-Identifier: Apache-2.0
"""What was loaded is written down before it changes, and goes with its card."""

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cyborg_lite.db import handles, inventory, loaded_regions, programming
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Deployable, LoadedRegion
from cyborg_lite.model.inventory import HostReport
from tests.fakes.bitstream_files import IMAGE_ID, OTHER_FUNCTION, bitstream
from tests.fakes.fpga import FACTORY, HOST, fpga_card
from tests.fakes.fpga_cloud import Cloud


@pytest.fixture
def number(database: Database) -> int:
    """Of the one deployable."""
    report = HostReport(HOST, 'boot', (fpga_card(),))
    database.write(inventory.store, report)
    return database.read(_number)


def _number(session: Session) -> int:
    return session.scalars(select(Deployable.id)).one()


def _rows(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(LoadedRegion)) or 0


def test_a_region_that_no_bind_changed_has_nothing_to_bring_back(
    database: Database, number: int
) -> None:
    assert database.read(loaded_regions.earlier, number) is None
    database.write(loaded_regions.keep, number, bitstream())
    assert database.read(loaded_regions.earlier, number) is None


def test_a_bitstream_comes_back_as_it_was_kept(database: Database, number: int) -> None:
    database.write(loaded_regions.keep, number, bitstream())
    database.write(loaded_regions.intend, number, OTHER_FUNCTION)
    earlier = database.read(loaded_regions.earlier, number)
    assert earlier is not None
    assert earlier.bitstream == bitstream()
    assert earlier.function_id == OTHER_FUNCTION


def test_the_first_intention_counts(database: Database, number: int) -> None:
    database.write(loaded_regions.intend, number, FACTORY)
    database.write(loaded_regions.keep, number, bitstream())
    database.write(loaded_regions.intend, number, OTHER_FUNCTION)
    earlier = database.read(loaded_regions.earlier, number)
    assert earlier == loaded_regions.Earlier(None, FACTORY)
    database.write(loaded_regions.undone, number)
    assert database.read(loaded_regions.earlier, number) is None


def test_what_a_newer_conductor_kept_besides_is_ignored() -> None:
    kept = dict.fromkeys(loaded_regions._FIELDS, '') | {'colour': 'red'}
    found = loaded_regions.read(kept)
    assert found is not None
    assert found.name == ''


def test_it_goes_with_its_card(database: Database, number: int) -> None:
    database.write(loaded_regions.close, number, 'x' * 1000)
    assert database.read(_rows) == 1
    database.write(inventory.store, HostReport(HOST, 'boot', ()))
    assert database.read(_rows) == 0


def test_a_handle_says_what_its_host_has_to_load_after_a_boot(
    database: Database,
) -> None:
    cloud = Cloud(database)
    cloud.plug(fpga_card(regions=2))
    name = f'{HOST}_0000:5e:00.0_region1'
    job = cloud.accepted({'accel:bitstream_id': IMAGE_ID}, name)
    cloud.binder.run(job)
    (handle,) = database.read(handles.held, job.payload['arqs'])
    assert handle.changed
    assert handle.load is not None
    assert (handle.load.address, handle.load.part) == ('0000:5e:00.0', '_region1')
    assert handle.load.bitstream.image_id == IMAGE_ID
    region = database.read(programming.region_of_handle, handle.uuid)
    assert region is not None
    assert region.name == name
