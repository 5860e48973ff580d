# SPDX-License-Identifier: Apache-2.0
"""Selectors of device profiles, and the deployables that match them."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Text,
    cast,
    exists,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.column_types import read_attributes
from cyborg_lite.db.core.query import as_strings
from cyborg_lite.db.core.tables import (
    Attribute,
    Deployable,
    Device,
    DeviceProfile,
    ProviderTraits,
    Service,
)
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.inventory import attribute_keys, typed_attributes
from cyborg_lite.model.inventory.host_report import UNUSABLE_HEALTH, Health
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    AttributeType,
    TypedAttribute,
)
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.profiles.selector_keys import find_selector
from cyborg_lite.model.profiles.selectors import (
    TRAIT_PREFIX,
    Selector,
    list_computed_traits,
    select_traits,
)
from cyborg_lite.model.traits import DEGRADED

_KEY: Final = 'all'  # one job for all selectors
_LATER_KEY: Final = 'later'  # of the one that compares bitstreams again
_LATER_MS: Final = 300_000
Groups = Sequence[Mapping[str, str]]


def read_attribute(key: str) -> ScalarSelect[str]:
    """Return SQL for an attribute of a deployable that its driver reports."""
    return (
        select(Attribute.value)
        .where(
            Attribute.deployable_id == Deployable.id,
            Attribute.key == key,
            Attribute.reported.is_(True),
        )
        .correlate(Deployable)
        .scalar_subquery()
    )


GROUP_SIZE: Final = read_attribute(attribute_keys.GROUP_SIZE).label('group_size')
ATTRIBUTES: Final = (
    Device.type,
    Device.model,
    Device.vendor,
    Deployable.typed_attributes,
    GROUP_SIZE,
)
"""The columns from which ``list_attributes`` computes."""


def has_selectors() -> ColumnElement[bool]:
    """Return SQL that is true if a device profile has a selector.

    It costs no statement of its own.
    """
    return exists().where(_names_computed_trait())


_GROUPS: Final = (
    DeviceProfile.groups,
    DeviceProfile.alternatives,
    DeviceProfile.former_groups,
)


def _names_computed_trait() -> ColumnElement[bool]:
    texts = (cast(column, Text) for column in _GROUPS)
    return or_(*(text.contains(TRAIT_PREFIX, autoescape=True) for text in texts))


def list_selectors(session: Session) -> tuple[Selector, ...]:
    """Return the selectors of all device profiles, in one SELECT."""
    selectors = {
        selector.trait: selector
        for group in list_compiled_groups(session, former=False)
        if (selector := find_selector(group)) is not None
    }
    return tuple(selectors[trait] for trait in sorted(selectors))


def list_compiled_groups(session: Session, *, former: bool = True) -> Groups:
    """Return the groups of all device profiles that have selectors, in one SELECT.

    :param former: include the groups before the last edit, by which ARQs may be bound
    """
    rows = session.execute(select(*_GROUPS).where(_names_computed_trait()))
    return [
        as_strings(group)
        for groups, alternatives, formerly in rows
        for group in chain(
            groups, *(alternatives or ()), (formerly or ()) if former else ()
        )
        if list_computed_traits(group)
    ]


def store_loadable(session: Session, loadable: Mapping[str, Sequence[str]]) -> None:
    """Store which bitstreams the deployables can load, where this has changed.

    :param loadable: names of their attributes by uuid of the provider; others can load
        none
    """
    rows = session.execute(
        select(Deployable.rp_uuid, Deployable.loadable).where(
            or_(Deployable.loadable.is_not(None), Deployable.rp_uuid.in_(loadable))
        )
    )
    for rp_uuid, stored in rows.all():
        names = loadable.get(rp_uuid or '')
        if names != stored:
            is_it = Deployable.rp_uuid == rp_uuid
            change(session, update(Deployable).where(is_it).values(loadable=names))


def list_declarations(session: Session) -> tuple[AttributeDeclaration, ...]:
    """Return the attributes that drivers may report and those that they have reported.

    A name may have several types if drivers of different packages use it.
    """
    declarations = {
        (item.name, item.type, item.unit): item
        for item in (*typed_attributes.OF_EVERY_DEVICE, *typed_attributes.SHARED)
    }
    # Databases cannot compare JSON; as text, equal columns are read once.
    texts = session.scalars(
        select(cast(Deployable.typed_attributes, Text))
        .where(Deployable.typed_attributes.is_not(None))
        .distinct()
    )
    for text in texts:
        for item in read_attributes(json.loads(text or '[]')):
            key = item.name, item.type, item.unit
            declarations.setdefault(key, AttributeDeclaration(*key))
    return tuple(declarations[key] for key in sorted(declarations))


def list_attributes(
    row: Any, loadable: Iterable[str] | None
) -> tuple[TypedAttribute, ...]:
    """Return the typed attributes of a deployable with those of its device.

    :param row: a row with the columns ``ATTRIBUTES``
    :param loadable: names of the bitstreams that the deployable can load
    """
    # A group may have functions of several cards. Its driver knows what they share.
    shared = typed_attributes.OF_ONE_CARD if row.group_size is None else ()
    return (
        *shared,
        typed_attributes.DEVICE_TYPE.of(row.type),
        typed_attributes.MODEL.of(row.model),
        typed_attributes.VENDOR.of(row.vendor),
        *read_attributes(row.typed_attributes),
        *(
            TypedAttribute(name, AttributeType.BOOLEAN, 'true')
            for name in loadable or ()
        ),
    )


def list_taints(health: str) -> frozenset[str]:
    """Return the traits of a device that a group may refuse."""
    return frozenset({DEGRADED} if health == Health.DEGRADED else ())


def is_reliable(agent: str | None, health: str) -> bool:
    """Check whether the stored attributes of a device describe it now.

    :param agent: state of the agent of its host; None: no agent has reported yet
    """
    return (
        agent in (ServiceState.UP, ServiceState.STOPPED)
        and health not in UNUSABLE_HEALTH
    )


def list_outdated_hosts(
    session: Session, selectors: Sequence[Selector]
) -> tuple[str, ...]:
    """Return the hosts with providers that must get or lose a trait of a selector.

    All deployables are evaluated, in one SELECT.
    """
    rows = session.execute(
        select(
            *ATTRIBUTES,
            Deployable.loadable,
            Device.hostname,
            Device.health,
            Service.state.label('agent'),
            ProviderTraits.traits.label('published'),
        )
        .join(Device, Deployable.device_id == Device.id)
        .outerjoin(Service, Service.is_agent_of(Device.hostname))
        .outerjoin(ProviderTraits, ProviderTraits.rp_uuid == Deployable.rp_uuid)
        .where(Deployable.rp_uuid.is_not(None), Deployable.resource_class.is_not(None))
    )
    return tuple(sorted(set(_find_outdated(rows, selectors))))


# Any: the columns of list_outdated_hosts.
def _find_outdated(rows: Any, selectors: Sequence[Selector]) -> Iterator[str]:
    for row in rows:
        desired: frozenset[str] = frozenset()
        if is_reliable(row.agent, row.health):
            attributes = list_attributes(row, row.loadable)
            desired = select_traits(selectors, attributes)
        published = {
            trait for trait in row.published or () if trait.startswith(TRAIT_PREFIX)
        }
        if published != desired:
            yield row.hostname


def schedule_syncs(session: Session, hosts: Collection[str]) -> None:
    """Write a Placement sync job for each host."""
    queue.sync_hosts(session, hosts)


def schedule_evaluation(session: Session, *profiles: Groups) -> bool:
    """Write the job that evaluates all deployables, if a profile has a selector.

    :param profiles: groups of profiles before or after a change
    :returns: True if the job was written
    """
    if not any(list_computed_traits(group) for groups in profiles for group in groups):
        return False
    queue.add_job(session, _evaluation(_KEY))
    return True


def finish_evaluation(session: Session, job: Job, *, repeat: bool) -> None:
    """Remove the job.

    :param repeat: write a later one, because images change without a notice
    """
    queue.finish_job(session, job)
    if repeat:
        later = _evaluation(_LATER_KEY), _LATER_MS
        queue.add_delayed_jobs(session, [later])


def _evaluation(key: str) -> NewJob:
    return NewJob(OperationKind.SELECTORS, key=key)
