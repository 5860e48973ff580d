# SPDX-License-Identifier: Apache-2.0
"""Stored FPGA regions, and the changes that a load makes to them."""

from uuid import uuid4

import pytest
from sqlalchemy import select

from cyborg_lite import codec
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.bitstreams.programming import StoredRegion
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle
from cyborg_lite.db.devices import deployables
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.devices import DeployableInUse
from cyborg_lite.model.devices.cleaning import CleanState
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.inventory.host_report import Device, HostReport
from cyborg_lite.model.jobs import Job, NewJob, ProgramPayload
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bitstream_files import IMAGE_ID, OTHER_FUNCTION, bitstream
from tests.builders.fpga_reports import HOST, fpga_card, holding
from tests.builders.rows import OWNER, add_arqs
from tests.builders.table_rows import change_rows, read_column

NAME = f'{HOST}_0000:5e:00.0'


def store(database: Database, card: Device) -> None:
    database.write(reports.store_report, HostReport(HOST, 'boot', (card,)))


def find_deployable(database: Database, name: str) -> DeployableRecord:
    query = Query(filters={'name': (name,)})
    (deployable,) = database.read(deployables.list_deployables, query)
    return deployable


def find_region(database: Database, name: str = NAME) -> StoredRegion:
    uuid = find_deployable(database, name).uuid
    return database.read(programming.find_region, uuid)


def begin_load(
    database: Database, region: StoredRegion, loaded: str | None = None
) -> Job:
    payload = ProgramPayload(region.uuid, IMAGE_ID, is_shell=False)
    job = NewJob(OperationKind.PROGRAM, codec.dump(payload))
    return database.write(programming.begin_load, region, job, OWNER, loaded)


def claim_handle(database: Database, key: str) -> str:
    """Let a new ARQ own a handle; return the uuid of the ARQ."""
    (uuid,) = add_arqs(database, 1)
    change_rows(database, AttachHandle, AttachHandle.key == key, arq_uuid=uuid)
    return uuid


def list_preparing(database: Database) -> list[bool]:
    statement = select(AttachHandle.preparing).order_by(AttachHandle.id)
    return read_column(database, statement)


def test_find_region_returns_suffix_and_attributes(database: Database) -> None:
    store(database, fpga_card(regions=2))
    region = find_region(database, f'{NAME}_region1')
    assert (region.hostname, region.control_address) == (HOST, '0000:5e:00.0')
    assert (region.suffix, region.image_id) == ('_region1', None)
    assert region.attributes['rc'] == 'FPGA'


def test_find_region_of_handle_returns_its_deployable(database: Database) -> None:
    store(database, fpga_card(regions=2))
    statement = select(AttachHandle.uuid).where(AttachHandle.key == '0000:5e:00.2')
    (handle,) = read_column(database, statement)
    region = database.read(programming.find_region_of_handle, handle)
    assert region is not None
    assert region.name == f'{NAME}_region1'
    assert database.read(programming.find_region_of_handle, str(uuid4())) is None


def test_begin_load_allocated_region_raises(database: Database) -> None:
    store(database, fpga_card())
    claim_handle(database, '0000:5e:00.0')
    with pytest.raises(DeployableInUse, match='it is bound'):
        begin_load(database, find_region(database))
    assert list_preparing(database) == [False]


def test_begin_load_other_image_than_expected_raises(database: Database) -> None:
    store(database, fpga_card(regions=1))
    with pytest.raises(DeployableInUse, match='another image'):
        begin_load(database, find_region(database), loaded=IMAGE_ID)
    assert not any(list_preparing(database))
    begin_load(database, find_region(database), loaded='')
    assert any(list_preparing(database))


@pytest.mark.parametrize('whole_card', [False, True])
def test_check_region_unused_other_region_blocks_whole_card(
    database: Database, whole_card: bool
) -> None:
    store(database, fpga_card(regions=2))
    arq = claim_handle(database, '0000:5e:00.2')

    def check(*own: str) -> None:
        region = find_region(database, f'{NAME}_region0')
        database.read(
            lambda session: programming.check_region_unused(
                session, region, own, whole_card=whole_card
            )
        )

    check(arq)
    if whole_card:
        with pytest.raises(DeployableInUse):
            check()
    else:
        check()


def test_record_load_stores_image_and_attributes(database: Database) -> None:
    store(database, fpga_card())
    loaded = holding(fpga_card(), '', OTHER_FUNCTION)
    region = find_region(database)
    change_rows(database, AttachHandle, clean_state=CleanState.NEEDS_BITSTREAM)
    database.write(programming.record_load, region, bitstream(), loaded)
    assert set(read_column(database, select(AttachHandle.clean_state))) == {'clean'}
    region = find_region(database)
    assert region.image_id == bitstream().image_id
    assert region.attributes['bitstream_name'] == bitstream().name
    (job,) = database.read(queue.count_jobs)
    assert job.type == OperationKind.RECONCILE


def test_mark_region_unusable_reserves_all_handles(database: Database) -> None:
    store(database, fpga_card())
    loaded = holding(fpga_card(), '', OTHER_FUNCTION)
    region = find_region(database)
    database.write(programming.record_load, region, bitstream(), loaded)
    database.write(programming.mark_region_unusable, region, 'CRC error')
    region = find_region(database)
    assert (region.image_id, region.unusable_reason) == (None, 'CRC error')
    assert 'bitstream_name' not in region.attributes
