# SPDX-License-Identifier: Apache-2.0
"""Programming: the stored regions, and the changes that a load makes to them.

While a region is loaded, no ARQ can claim its handles. One statement marks the handles
as being prepared and checks that all of them were free.

A function that changes a job raises ``JobLost`` if this process has lost its lease.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from sqlalchemy import ColumnElement, Select, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.bitstreams import loaded_regions
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.incarnations import check_trusted
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Attribute,
    Deployable,
    LoadedRegion,
)
from cyborg_lite.db.core.tables import Device as DeviceRow
from cyborg_lite.db.devices import hold
from cyborg_lite.db.inventory import agents, device_events, reports
from cyborg_lite.db.inventory.handles import GENERATION_PARAMETER, IS_CURRENT_BIND
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.devices import DeployableInUse, DeployableNotFound
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.bitstreams.choice import RegionProperties, read_region_properties
from cyborg_lite.model.devices.cleaning import CleanState
from cyborg_lite.model.devices.events import DeviceEventKind
from cyborg_lite.model.inventory.facts import name_suffix
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.model.jobs import Job, NewJob, Owner, ProgramPayload
from cyborg_lite.model.limits import REASON_MAX_LENGTH

# Attributes that describe the loaded image. Host reports do not delete them.
_NAME: Final = 'bitstream_name'
_FUNCTION: Final = 'bitstream_function'
_DRIVER: Final = 'bitstream_driver'
_DRIVER_PATH: Final = 'bitstream_driver_path'
_IMAGE_KEYS: Final = (_NAME, _FUNCTION, _DRIVER, _DRIVER_PATH)


@dataclass(frozen=True, slots=True)
class StoredRegion:
    """A deployable with the values that loading a bitstream requires."""

    deployable_id: int
    uuid: str
    name: str
    device_id: int
    hostname: str
    control_address: str
    suffix: str  # of its name; empty: the deployable is the card itself
    image_id: str | None  # None: no image is loaded
    attributes: Mapping[str, str]
    unusable_reason: str = ''  # why no ARQ can claim it; empty: ARQs can


@dataclass(frozen=True, slots=True)
class RegionOfArq:
    """An ARQ that is being bound, and the region whose handle it owns."""

    arq_uuid: str
    group: Mapping[str, str]
    region: StoredRegion


def list_regions_of_arqs(
    session: Session, arqs: Sequence[str], generation: int
) -> tuple[RegionOfArq, ...]:
    """Return the regions of ARQs that have claimed their handles.

    :param generation: of the bind; 0: not compared
    """
    rows = session.execute(
        select(Arq.uuid, Arq.device_profile_group, AttachHandle.deployable_id)
        .join(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
        .where(Arq.uuid.in_(arqs), IS_CURRENT_BIND)
        .order_by(AttachHandle.id),
        {GENERATION_PARAMETER: generation},
    ).all()
    regions = {
        deployable_id: _find_region(session, Deployable.id == deployable_id)
        for deployable_id in {row.deployable_id for row in rows}
    }
    return tuple(
        RegionOfArq(row.uuid, row.device_profile_group, region)
        for row in rows
        if (region := regions[row.deployable_id]) is not None
    )


def find_region_of_handle(session: Session, uuid: str) -> StoredRegion | None:
    """Return the region of an attach handle, or None if the handle does not exist."""
    deployable = select(AttachHandle.deployable_id).where(AttachHandle.uuid == uuid)
    return _find_region(session, Deployable.id == deployable.scalar_subquery())


def find_region(session: Session, uuid: str) -> StoredRegion:
    """Return the region with a uuid.

    The only region of a card that is scheduled as a whole stands for the card, which is
    returned instead.

    :raises DeployableNotFound: no deployable has the uuid
    """
    region = _find_region(session, Deployable.uuid == uuid)
    if region is None:
        raise DeployableNotFound(uuid=uuid)
    card = _find_card(session, region)
    return region if card is None else card


def _find_card(session: Session, region: StoredRegion) -> StoredRegion | None:
    """Return the card of its only region.

    :returns: None if the region is a card, scheduled alone, or one of several
    """
    if bitstreams.VENDOR not in region.attributes:
        return None
    root = aliased(Deployable)
    root_id = session.scalar(
        select(root.id)
        .join(Deployable, Deployable.root_id == root.id)
        .where(Deployable.id == region.deployable_id, root.resource_class.is_not(None))
    )
    regions = (
        select(func.count(Attribute.id))
        .join(Deployable, Attribute.deployable_id == Deployable.id)
        .where(Deployable.root_id == root_id, Attribute.key == bitstreams.VENDOR)
    )
    if root_id is None or session.scalar(regions) != 1:
        return None
    return _find_region(session, Deployable.id == root_id)


_ROOT: Final = aliased(Deployable)
_REGION: Final = Record(
    StoredRegion,
    Deployable,
    DeviceRow,
    deployable_id=Deployable.id,
    suffix=From(
        lambda name, root: name_suffix(name, root or name), Deployable.name, _ROOT.name
    ),
    image_id=Deployable.bitstream_id,
    unusable_reason=func.coalesce(LoadedRegion.unusable_reason, ''),
)
_REGIONS: Final = (
    _REGION.select()
    .join(DeviceRow, Deployable.device_id == DeviceRow.id)
    .outerjoin(_ROOT, Deployable.root_id == _ROOT.id)
    .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
)


def _find_region(
    session: Session, condition: ColumnElement[bool]
) -> StoredRegion | None:
    row = session.execute(_REGIONS.where(condition)).one_or_none()
    if row is None:
        return None
    attributes = session.execute(
        select(Attribute.key, Attribute.value).where(
            Attribute.deployable_id == row.row_id, Attribute.hidden.is_(False)
        )
    )
    return _REGION.read(row, attributes={row.key: row.value for row in attributes})


def list_region_properties(session: Session) -> Mapping[str, RegionProperties]:
    """Return the properties of all deployables that can be scheduled, in two SELECTs.

    :returns: by uuid of the provider
    """
    rows = session.execute(
        select(Deployable.id, Deployable.rp_uuid, Deployable.bitstream_id).where(
            Deployable.rp_uuid.is_not(None), Deployable.resource_class.is_not(None)
        )
    ).all()
    programmable = select(Attribute.deployable_id).where(
        Attribute.key == bitstreams.VENDOR
    )
    attributes: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for deployable_id, key, value in session.execute(
        select(Attribute.deployable_id, Attribute.key, Attribute.value).where(
            Attribute.deployable_id.in_(programmable), Attribute.hidden.is_(False)
        )
    ):
        attributes[deployable_id][key] = value
    return {
        row.rp_uuid or '': read_region_properties(attributes[row.id], row.bitstream_id)
        for row in rows
    }


def check_region_unused(
    session: Session, region: StoredRegion, own: Sequence[str], *, whole_card: bool
) -> None:
    """Check that a load changes no deployable that another ARQ uses.

    :param own: uuids of the ARQs for which the region is loaded
    :param whole_card: the load changes all regions of the card
    :raises DeployableInUse: another ARQ owns a handle of the region or the card
    """
    foreign = select(func.count()).where(
        AttachHandle.deployable_id.in_(_affected_deployables(region, whole_card)),
        AttachHandle.arq_uuid.is_not(None),
        AttachHandle.arq_uuid.not_in(own),
    )
    if session.scalar(foreign):
        reason = 'an ARQ owns a handle of it, or of its card.'
        raise DeployableInUse(uuid=region.uuid, reason=reason)


def _affected_deployables(region: StoredRegion, whole_card: bool) -> Select[int]:
    """Return a subquery of the deployables that a load changes.

    The regions of a card that is scheduled as a whole have no handles of their own.
    """
    card = select(Deployable.id).where(Deployable.device_id == region.device_id)
    if whole_card:
        return card
    is_region = Deployable.id == region.deployable_id
    # The owner of the card owns all regions. A region without handles uses the handles
    # of its card.
    return card.where(or_(is_region, Deployable.root_id.is_(None)))


def begin_load(
    session: Session,
    region: StoredRegion,
    job: NewJob,
    owner: Owner,
    loaded: str | None = None,
) -> Job:
    """Reserve a region and add the job that loads it.

    :param job: with a ``ProgramPayload``
    :param loaded: image that the deployable must have; empty: none; None: any
    :raises DeployableInUse: an ARQ owns a handle of the region, or a job is loading it
        or changes its device, or the deployable has another image
    :raises DatabaseQuarantined: instances may use the region
    """
    check_trusted(session)
    if hold.is_changing(session, [region.device_id]):
        reason = 'the mode or the configuration of its device is being changed.'
        raise DeployableInUse(uuid=region.uuid, reason=reason)
    payload = queue.read_payload(ProgramPayload, job.payload)
    affected = _affected_deployables(region, payload.is_shell)
    handles = AttachHandle.deployable_id.in_(affected)
    is_free = AttachHandle.arq_uuid.is_(None), AttachHandle.preparing.is_(False)
    count = session.scalar(select(func.count()).where(handles)) or 0
    reserved = update(AttachHandle).where(handles, *is_free).values(preparing=True)
    if change(session, reserved) != count:
        reason = 'it is bound, or being programmed already.'
        raise DeployableInUse(uuid=region.uuid, reason=reason)
    deployable = select(Deployable.bitstream_id).where(
        Deployable.uuid == payload.deployable_uuid
    )
    # No other load can end: this one has reserved the handles.
    if loaded not in (None, session.scalar(deployable) or ''):
        reason = 'another image has been loaded meanwhile.'
        raise DeployableInUse(uuid=region.uuid, reason=reason)
    kind = DeviceEventKind.PROGRAMMING_STARTED
    _add_event(session, region.uuid, kind, value=payload.image_uuid)
    return queue.add_running_job(session, job, owner)


def end_load(
    session: Session, region: StoredRegion | None, job: Job, failure: CyborgError | None
) -> None:
    """Finish the job of a load; ARQs can claim the handles of the region again.

    :param region: None: its deployable does not exist any more
    :param failure: why the load failed; None: it succeeded
    """
    payload = queue.read_payload(ProgramPayload, job.payload)
    if region is not None:
        affected = _affected_deployables(region, payload.is_shell)
        handles = AttachHandle.deployable_id.in_(affected)
        reserved = update(AttachHandle).where(handles, AttachHandle.arq_uuid.is_(None))
        change(session, reserved.values(preparing=False))
    if failure is not None:
        reason, kind = failure.text, DeviceEventKind.PROGRAMMING_FAILED
        reason = reason[:REASON_MAX_LENGTH]
        _add_event(session, payload.deployable_uuid, kind, reason=reason)
    queue.finish_job(session, job, failure)


def record_load(
    session: Session, region: StoredRegion, bitstream: Bitstream, card: Device
) -> None:
    """Store a bitstream that was loaded into a region.

    :param card: the card as its host reports it after the load
    """
    reports.store_card(session, region.hostname, card)
    is_device, value = DeviceRow.id == region.device_id, bitstream.image_id or ''
    kind = DeviceEventKind.PROGRAMMED
    device_events.add_events(session, is_device, kind, unit=region.suffix, value=value)
    if bitstream.is_shell:
        # A shell resets all regions.
        of_card = Deployable.device_id == region.device_id
        change(session, update(Deployable).where(of_card).values(bitstream_id=None))
        loaded_regions.delete_regions_of_card(session, region.device_id)
        _delete_image_attributes(session, of_card)
        queue.add_job(session, queue.placement_sync_job(region.hostname))
        return
    image = {'bitstream_id': bitstream.image_id}
    change(session, update(Deployable).where(_has_bitstream_of(region)).values(**image))
    units = update(AttachHandle).where(
        AttachHandle.deployable_id == region.deployable_id,
        AttachHandle.clean_state == CleanState.NEEDS_BITSTREAM,
    )
    change(session, units.values(clean_state=CleanState.CLEAN))
    loaded_regions.record_loaded_bitstream(session, region.deployable_id, bitstream)
    driver = f'{bitstream.driver or ""} {bitstream.driver_version}'.strip()
    _store_image_attributes(
        session,
        region.deployable_id,
        {
            _NAME: bitstream.name,
            _FUNCTION: bitstream.function_name or bitstream.function_id,
            _DRIVER: driver,
            _DRIVER_PATH: bitstream.driver_path,
        },
    )
    queue.add_job(session, queue.placement_sync_job(region.hostname))


def mark_region_unusable(session: Session, region: StoredRegion, reason: str) -> None:
    """Reserve a region whose content is unknown.

    The next load into the region ends this, a host report does not.
    """
    agents.clear_digest(session, region.hostname)
    is_region = Deployable.id == region.deployable_id
    deployables = update(Deployable).where(_has_bitstream_of(region))
    change(session, deployables.values(bitstream_id=None))
    reserved = {'reserved': Deployable.num_accelerators}
    change(session, update(Deployable).where(is_region).values(**reserved))
    loaded_regions.mark_unusable(session, region.deployable_id, reason)
    _delete_image_attributes(session, is_region)
    queue.add_job(session, queue.placement_sync_job(region.hostname))


def _has_bitstream_of(region: StoredRegion) -> ColumnElement[bool]:
    """Return SQL that is true for the deployables with the bitstream of the region.

    If a card is loaded as a whole, these are all its deployables.
    """
    if region.suffix:
        return Deployable.id == region.deployable_id
    return Deployable.device_id == region.device_id


def _delete_image_attributes(session: Session, condition: ColumnElement[bool]) -> None:
    """Delete the attributes that describe images.

    :param condition: true for the deployables
    """
    deployables = select(Deployable.id).where(condition)
    is_described = Attribute.deployable_id.in_(deployables)
    of_image = Attribute.key.in_(_IMAGE_KEYS), Attribute.reported.is_(False)
    change(session, delete(Attribute).where(is_described, *of_image))


def _store_image_attributes(
    session: Session, deployable_id: int, attributes: Mapping[str, str]
) -> None:
    of_deployable = Attribute.deployable_id == deployable_id
    of_image = Attribute.key.in_(_IMAGE_KEYS)
    change(session, delete(Attribute).where(of_deployable, of_image))
    rows = [
        {
            'uuid': str(uuid4()),
            'deployable_id': deployable_id,
            'key': key,
            'value': value,
            'reported': False,
        }
        for key, value in attributes.items()
        if value
    ]
    if rows:
        session.execute(insert(Attribute), rows)


# --- the history of the device ---


def _add_event(
    session: Session, deployable: str, kind: DeviceEventKind, **details: str
) -> None:
    device = select(Deployable.device_id).where(Deployable.uuid == deployable)
    is_device = DeviceRow.id == device.scalar_subquery()
    device_events.add_events(session, is_device, kind, **details)
