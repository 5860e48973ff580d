# SPDX-License-Identifier: Apache-2.0
"""What the hosts have: reports stored, and what is gone forgotten."""

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cyborg_lite.db import jobs, services
from cyborg_lite.db.change import change
from cyborg_lite.db.inventory_changes import write
from cyborg_lite.db.inventory_rows import load
from cyborg_lite.db.providers import sync_job
from cyborg_lite.db.tables import AttachHandle, Deployable, Device
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.inventory_diff import Changes, changes, leftovers


def store(
    session: Session, report: HostReport, request_id: str | None = None
) -> Changes:
    """Make the rows of the host what the report says; return what that changed.

    :raises InvalidInput: it names a deployable that another host has
    """
    host = report.hostname
    services.keep_digest(session, host, report.digest, report.boot_id)
    known, ids = load(session, host)
    found = changes(known, report)
    try:
        write(session, host, found, ids)
    except DBDuplicateEntry:
        reason = f'A deployable that host {host} reports belongs to another host.'
        raise InvalidInput(reason=reason) from None
    if found.concern_placement:
        jobs.add(session, sync_job(host, request_id))
    return found


def forget_missing(session: Session, hostname: str) -> None:
    """Drop what its host does not have any more and nobody holds.

    Devices that were kept for that alone go with it. The host is asked for its
    inventory, which tells what else has no reason left to be there.
    """
    of_host = (
        select(Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .where(Device.hostname == hostname)
    )
    gone = delete(AttachHandle).where(
        AttachHandle.deployable_id.in_(of_host),
        AttachHandle.missing.is_(True),
        AttachHandle.arq_uuid.is_(None),
    )
    if not change(session, gone):
        return
    services.forget_digest(session, hostname)
    known, ids = load(session, hostname)
    write(session, hostname, leftovers(known), ids)
    jobs.add(session, sync_job(hostname))
