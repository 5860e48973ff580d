# SPDX-License-Identifier: Apache-2.0
"""Stores host reports, and deletes handles that no longer exist."""

from dataclasses import replace

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import delete, not_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.tables import AttachHandle, Deployable, Device, Service
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.inventory.changes import load_inventory, write_changes
from cyborg_lite.db.inventory.handles import HELD
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.hosts import ReportOutdated
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.inventory.diff import (
    InventoryChanges,
    diff_leftovers,
    diff_report,
)
from cyborg_lite.model.inventory.facts import StoredInventory
from cyborg_lite.model.inventory.host_report import Device as ReportedDevice
from cyborg_lite.model.inventory.host_report import HostReport


def store_report(
    session: Session,
    report: HostReport,
    request_id: str | None = None,
    new_status: DeviceStatus = DeviceStatus.ENABLED,
) -> InventoryChanges:
    """Make the rows of a host match its report.

    :param new_status: status of the devices that the host did not have before
    :returns: the changes of the rows
    :raises InvalidInput: the report contains a deployable of another host
    :raises AgentIdentityRefused: the host has another agent, which is up
    :raises ReportOutdated: a later report of the host is stored
    """
    host = report.hostname
    _accept_report(session, report)
    stored, ids = load_inventory(session, host)
    difference = diff_report(stored, report)
    try:
        write_changes(session, host, difference, ids, new_status)
    except DBDuplicateEntry:
        reason = f'A deployable that host {host} reports belongs to another host.'
        raise InvalidInput(reason=reason) from None
    if difference.concern_placement:
        queue.add_job(session, queue.placement_sync_job(host, request_id))
    return difference


def _accept_report(session: Session, report: HostReport) -> None:
    """Store digest and number of a report, if no later report is stored."""
    host = report.hostname
    agents.store_digest(session, host, report.digest, report.boot_id)
    if not report.number:
        return  # the report has no order
    is_newer = Service.is_agent_of(host) & (Service.report_number < report.number)
    # The acceptance of a new agent clears the digest.
    values = {'report_number': report.number, 'digest': report.digest}
    numbered = update(Service).where(is_newer).values(values)
    if change(session, numbered.where(Service.identity == report.identity)):
        return
    agents.accept_agent(session, host, report.identity)
    if not change(session, numbered):
        raise ReportOutdated(host=host)


def delete_missing_handles(session: Session, hostname: str) -> None:
    """Delete the handles that the host does not have any more and no ARQ owns.

    Devices that existed only for these handles are deleted as well. The agent is asked
    for a whole report, because other rows may have become superfluous.
    """
    deployables = (
        select(Deployable.id)
        .join(Device, Deployable.device_id == Device.id)
        .where(Device.hostname == hostname)
    )
    missing = delete(AttachHandle).where(
        AttachHandle.deployable_id.in_(deployables),
        AttachHandle.missing.is_(True),
        not_(HELD),
    )
    if not change(session, missing):
        return
    agents.clear_digest(session, hostname)
    stored, ids = load_inventory(session, hostname)
    write_changes(session, hostname, diff_leftovers(stored), ids)
    queue.add_job(session, queue.placement_sync_job(hostname))


def store_card(session: Session, hostname: str, card: ReportedDevice) -> None:
    """Store a card as a report of this card alone; a report of the host follows."""
    # This also locks the row that other reports of the host need.
    agents.clear_digest(session, hostname)
    stored, ids = load_inventory(session, hostname)
    report = HostReport(hostname, '', (card,))
    difference = diff_report(_narrow(stored, card.control_address), report)
    if not difference.devices.new:
        write_changes(session, hostname, difference, ids)


def _narrow(stored: StoredInventory, address: str) -> StoredInventory:
    """Return the inventory of one device, with all names of the host.

    The names prevent that a name is used twice.
    """
    layout = stored.layout
    card = {
        i for i, facts in layout.devices.items() if facts.control_address == address
    }
    claimed = frozenset(path for path in stored.claimed if path[0] in card)
    return replace(stored, layout=layout.select(card), claimed=claimed)
