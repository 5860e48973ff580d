# SPDX-License-Identifier: Apache-2.0
"""Regions as they stand in the database, and what loading makes of them.

Nobody is given a handle of a region that is being loaded for somebody else: its free
handles are marked as being worked on, by a statement that says whether they were free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from sqlalchemy import ColumnElement, Select, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db import (
    inventory_changes,
    inventory_rows,
    jobs,
    loaded_regions,
    program_jobs,
    services,
)
from cyborg_lite.db.change import change
from cyborg_lite.db.providers import sync_job
from cyborg_lite.db.tables import (
    Arq,
    AttachHandle,
    Attribute,
    Deployable,
    LoadedRegion,
)
from cyborg_lite.db.tables import Device as DeviceRow
from cyborg_lite.exceptions import DeployableInUse, DeployableNotFound
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstreams import Bitstream
from cyborg_lite.model.inventory import Device, HostReport
from cyborg_lite.model.inventory_diff import changes
from cyborg_lite.model.inventory_facts import Known, part_of
from cyborg_lite.model.jobs import Job, NewJob, Owner

# What is kept of an image that was loaded; no report takes these away.
_NAME: Final = 'bitstream_name'
_FUNCTION: Final = 'bitstream_function'
_DRIVER: Final = 'bitstream_driver'
_DRIVER_PATH: Final = 'bitstream_driver_path'
_OF_IMAGE: Final = (_NAME, _FUNCTION, _DRIVER, _DRIVER_PATH)


@dataclass(frozen=True, slots=True)
class Region:
    """A deployable, as far as loading something into it needs to know."""

    deployable_id: int
    uuid: str
    name: str
    device_id: int
    hostname: str
    address: str  # of the function that manages the device
    part: str  # what its name adds to the name of the device
    image_id: str | None
    attributes: Mapping[str, str]
    unusable: str = ''  # why nobody can be given it; empty: it can be


@dataclass(frozen=True, slots=True)
class Holding:
    """A request that is being bound, and the region of which it holds a handle."""

    arq_uuid: str
    group: Mapping[str, str]
    region: Region


def holdings(session: Session, arqs: Sequence[str]) -> tuple[Holding, ...]:
    """Of requests that have claimed their handles."""
    rows = session.execute(
        select(Arq.uuid, Arq.device_profile_group, AttachHandle.deployable_id)
        .join(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
        .where(Arq.uuid.in_(arqs))
        .order_by(AttachHandle.id)
    ).all()
    regions = {
        number: _region(session, Deployable.id == number)
        for number in {row.deployable_id for row in rows}
    }
    return tuple(
        Holding(row.uuid, row.device_profile_group, region)
        for row in rows
        if (region := regions[row.deployable_id]) is not None
    )


def region_of_handle(session: Session, uuid: str) -> Region | None:
    """Of which that is an attach handle; None: it is gone."""
    of_handle = select(AttachHandle.deployable_id).where(AttachHandle.uuid == uuid)
    return _region(session, Deployable.id == of_handle.scalar_subquery())


def region(session: Session, uuid: str) -> Region:
    """Where that is the only region of a card given as one, it is the card.

    :raises DeployableNotFound: there is none with that uuid
    """
    found = _region(session, Deployable.uuid == uuid)
    if found is None:
        raise DeployableNotFound(uuid=uuid)
    card = _card_of(session, found)
    return found if card is None else card


def _card_of(session: Session, only: Region) -> Region | None:
    """None: it is given apart, is the card itself, or is one region of several."""
    if bitstreams.VENDOR not in only.attributes:
        return None
    root = aliased(Deployable)
    number = session.scalar(
        select(root.id)
        .join(Deployable, Deployable.root_id == root.id)
        .where(Deployable.id == only.deployable_id, root.resource_class.is_not(None))
    )
    regions = (
        select(func.count(Attribute.id))
        .join(Deployable, Attribute.deployable_id == Deployable.id)
        .where(Deployable.root_id == number, Attribute.key == bitstreams.VENDOR)
    )
    if number is None or session.scalar(regions) != 1:
        return None
    return _region(session, Deployable.id == number)


def _region(session: Session, which: ColumnElement[bool]) -> Region | None:
    root = aliased(Deployable)
    row = session.execute(
        select(Deployable, DeviceRow, root.name, LoadedRegion.unusable)
        .join(DeviceRow, Deployable.device_id == DeviceRow.id)
        .outerjoin(root, Deployable.root_id == root.id)
        .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
        .where(which)
    ).one_or_none()
    if row is None:
        return None
    deployable, device, root_name, unusable = row
    mine = Attribute.deployable_id == deployable.id
    said = session.execute(select(Attribute.key, Attribute.value).where(mine))
    return Region(
        deployable_id=deployable.id,
        uuid=deployable.uuid,
        name=deployable.name,
        device_id=device.id,
        hostname=device.hostname,
        address=device.address,
        part=part_of(deployable.name, root_name or deployable.name),
        image_id=deployable.bitstream_id,
        attributes={row.key: row.value for row in said},
        unusable=unusable or '',
    )


def check_unused(
    session: Session, where: Region, own: Sequence[str], *, whole_card: bool
) -> None:
    """Nobody but ``own`` may hold what a load would change under him.

    :raises DeployableInUse: another request holds it
    """
    others = select(func.count()).where(
        AttachHandle.deployable_id.in_(_affected(where, whole_card)),
        AttachHandle.arq_uuid.is_not(None),
        AttachHandle.arq_uuid.not_in(own),
    )
    if session.scalar(others):
        reason = 'an accelerator request holds it, or a part of its card.'
        raise DeployableInUse(uuid=where.uuid, reason=reason)


def _affected(where: Region, whole_card: bool) -> Select[int]:
    """The deployables that a load reaches, as a subquery.

    Of a card that is scheduled as one thing its regions are only described.
    """
    wanted = select(Deployable.id).where(Deployable.device_id == where.device_id)
    if whole_card:
        return wanted
    mine = Deployable.id == where.deployable_id
    # Whoever holds the card holds all of it; a part without handles lends its own.
    return wanted.where(or_(mine, Deployable.root_id.is_(None)))


def begin(
    session: Session, where: Region, job: NewJob, owner: Owner, project_id: str | None
) -> Job:
    """Keep the region from being bound, and write the job that loads it.

    :param job: its payload names the deployable, the image, and whether it is a shell
    :param project_id: of who may follow it

    :raises DeployableInUse: somebody holds it, or loads something into it already
    """
    whole_card = bool(job.payload['shell'])
    of_it = AttachHandle.deployable_id.in_(_affected(where, whole_card))
    free = AttachHandle.arq_uuid.is_(None), AttachHandle.preparing.is_(False)
    there = session.scalar(select(func.count()).where(of_it)) or 0
    mark = update(AttachHandle).where(of_it, *free).values(preparing=True)
    if change(session, mark) != there:
        reason = 'it is bound, or being programmed already.'
        raise DeployableInUse(uuid=where.uuid, reason=reason)
    added = jobs.add_owned(session, job, owner)
    image = str(job.payload['image'])
    program_jobs.add(session, added.uuid, where.uuid, image, project_id)
    return added


def end(session: Session, where: Region, job: Job, failure: str | None) -> None:
    """Whatever came of it, the region can be bound again, as far as it is fit.

    :param failure: None: it is loaded
    :raises JobLost: another conductor took over
    """
    whole_card = bool(job.payload['shell'])
    of_it = AttachHandle.deployable_id.in_(_affected(where, whole_card))
    marked = update(AttachHandle).where(of_it, AttachHandle.arq_uuid.is_(None))
    change(session, marked.values(preparing=False))
    end_without(session, job, failure)


def end_without(session: Session, job: Job, failure: str | None) -> None:
    """The same, where the deployable is not there any more."""
    program_jobs.end(session, job.uuid, failure)
    jobs.finish(session, job)


def loaded(session: Session, where: Region, bitstream: Bitstream, now: Device) -> None:
    """The card is ``now`` what its host says: its tree, attributes and traits."""
    _revise(session, where.hostname, now)
    if bitstream.is_shell:
        _empty_card(session, where.device_id)
        jobs.add(session, sync_job(where.hostname))
        return
    image = {'bitstream_id': bitstream.image_id}
    change(session, update(Deployable).where(_holding(where)).values(**image))
    loaded_regions.keep(session, where.deployable_id, bitstream)
    driver = f'{bitstream.driver or ""} {bitstream.driver_version}'.strip()
    _describe(
        session,
        where.deployable_id,
        {
            _NAME: bitstream.name,
            _FUNCTION: bitstream.function_name or bitstream.function_id,
            _DRIVER: driver,
            _DRIVER_PATH: bitstream.driver_path,
        },
    )
    jobs.add(session, sync_job(where.hostname))


def unusable(session: Session, where: Region, reason: str) -> None:
    """Nobody knows what is in it: nobody shall be given it.

    Until something is loaded into it, whatever its host reports.
    """
    services.forget_digest(session, where.hostname)
    mine = Deployable.id == where.deployable_id
    change(session, update(Deployable).where(_holding(where)).values(bitstream_id=None))
    closed = {'reserved': Deployable.num_accelerators}
    change(session, update(Deployable).where(mine).values(**closed))
    loaded_regions.close(session, where.deployable_id, reason)
    _undescribe(session, mine)
    jobs.add(session, sync_job(where.hostname))


def _holding(where: Region) -> ColumnElement[bool]:
    """Of a card that is loaded as one all parts hold the same image."""
    if where.part:
        return Deployable.id == where.deployable_id
    return Deployable.device_id == where.device_id


def _empty_card(session: Session, device_id: int) -> None:
    """A shell resets all regions: nothing that was loaded into them is there."""
    of_card = Deployable.device_id == device_id
    change(session, update(Deployable).where(of_card).values(bitstream_id=None))
    loaded_regions.forget_card(session, device_id)
    _undescribe(session, of_card)


def _undescribe(session: Session, which: ColumnElement[bool]) -> None:
    """No image is in those deployables any more."""
    of_them = Attribute.deployable_id.in_(select(Deployable.id).where(which))
    of_image = Attribute.key.in_(_OF_IMAGE), Attribute.reported.is_(False)
    change(session, delete(Attribute).where(of_them, *of_image))


def _revise(session: Session, hostname: str, now: Device) -> None:
    """As a report of that one device would. The next report of all follows soon."""
    # Also locks the row that reports of the host wait for.
    services.forget_digest(session, hostname)
    known, ids = inventory_rows.load(session, hostname)
    found = changes(_only(known, now.address), HostReport(hostname, '', (now,)))
    if not found.devices.new:
        inventory_changes.write(session, hostname, found, ids)


def _only(known: Known, address: str) -> Known:
    """Of one device; the names of all, since they must not be given twice."""
    layout = known.layout
    mine = {i for i, facts in layout.devices.items() if facts.address == address}
    narrowed = replace(
        layout,
        devices={i: facts for i, facts in layout.devices.items() if i in mine},
        parts={p: facts for p, facts in layout.parts.items() if p[0] in mine},
        units={p: facts for p, facts in layout.units.items() if p[0] in mine},
        attributes={p: v for p, v in layout.attributes.items() if p[0] in mine},
    )
    held = frozenset(path for path in known.held if path[0] in mine)
    return replace(known, layout=narrowed, held=held)


def _describe(session: Session, deployable_id: int, said: Mapping[str, str]) -> None:
    own = Attribute.deployable_id == deployable_id
    change(session, delete(Attribute).where(own, Attribute.key.in_(_OF_IMAGE)))
    rows = [
        {
            'uuid': str(uuid4()),
            'deployable_id': deployable_id,
            'key': key,
            'value': value,
            'reported': False,
        }
        for key, value in said.items()
        if value
    ]
    if rows:
        session.execute(insert(Attribute), rows)
