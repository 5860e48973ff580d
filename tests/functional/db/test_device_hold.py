# SPDX-License-Identifier: Apache-2.0
"""The hold of a device beside a load that begins at the same time."""

import threading
from contextlib import suppress

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.db.devices import deployables
from cyborg_lite.db.devices import hold as device_hold
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.devices import DeployableInUse
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.jobs import Job, NewJob, ProgramPayload
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bitstream_files import IMAGE_ID
from tests.builders.fpga_reports import HOST, fpga_card
from tests.builders.rows import OWNER

_SHORT = 1.0  # seconds; a load that need not wait is faster


def test_load_beside_hold_one_is_refused(database: Database) -> None:
    """Otherwise a playbook would run while the region is loaded."""
    report = HostReport(HOST, 'boot', (fpga_card(),))
    database.write(reports.store_report, report)
    device = database.read(lambda session: session.scalars(select(Device.id)).one())
    (record,) = database.read(deployables.list_deployables, Query())
    region = database.read(programming.find_region, record.uuid)
    payload = ProgramPayload(region.uuid, IMAGE_ID, is_shell=False)
    job = NewJob(OperationKind.PROGRAM, codec.dump(payload))
    loads: list[Job] = []

    def load() -> None:
        with suppress(DeployableInUse):
            begin = programming.begin_load
            loads.append(database.write(begin, region, job, OWNER))

    thread = threading.Thread(target=load)

    def hold(session: Session) -> bool:
        if device_hold.find_obstacle(session, [device]):
            return False
        if thread.ident is None:  # else the transaction is retried after a deadlock
            thread.start()
            thread.join(_SHORT)
        device_hold.hold_devices(session, [device], 'job')
        return True

    is_held = database.write(hold)
    thread.join()
    assert is_held is not bool(loads)
