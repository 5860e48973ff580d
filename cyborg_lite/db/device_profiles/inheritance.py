# SPDX-License-Identifier: Apache-2.0
"""Device profiles that extend other ones, their parents.

The row of a profile has its flattened groups. The transaction that changes a profile
also changes the groups of its descendants.

A transaction locks a profile before its descendants, level by level, and reads the
children of a level after it has locked the level. A new child locks its parent. So the
transaction that comes second sees the changes of the first one. A profile that gets
another parent locks all ancestors of the new parent, because two such changes together
may be a cycle. The databases detect the deadlock of two such changes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, insert, select, update
from sqlalchemy import delete as delete_rows
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db import outbox
from cyborg_lite.db.change import change
from cyborg_lite.db.device_profiles.profile_rows import (
    read_profile,
    store_alternatives,
)
from cyborg_lite.db.selectors import schedule_evaluation
from cyborg_lite.db.tables import DeviceProfile as Row
from cyborg_lite.db.tables import DeviceProfileParent as Link
from cyborg_lite.db.tables import ProfileChoice, now
from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model.alternatives import list_all_groups
from cyborg_lite.model.device_profiles import DeviceProfile, Inheritance, Limits
from cyborg_lite.model.notifications import UPDATED
from cyborg_lite.model.own_groups import MAX_CHAIN, flatten_groups
from cyborg_lite.model.profile_errors import (
    DeviceProfileIsExtended,
    InvalidDescendants,
)

_MOST_NAMES: Final = 10  # in an error message


@dataclass(frozen=True, slots=True)
class Descendant:
    """A profile before and after a change of one that it extends."""

    id: int
    before: DeviceProfile
    after: DeviceProfile


def list_inheritances(
    session: Session, uuids: Sequence[str], visible: ColumnElement[bool]
) -> dict[str, Inheritance]:
    """Return parent and own groups of profiles, by uuid, in one SELECT.

    :param visible: SQL that is true for the rows of parents that the caller may see
    """
    child = aliased(Row)
    rows = session.execute(
        select(child.uuid.label('child'), Row.uuid, Row.name, Link.own_groups)
        .join(Link, Link.device_profile_id == child.id)
        .join(Row, Row.id == Link.parent_id)
        .where(child.uuid.in_(uuids), visible)
    )
    return {
        row.child: Inheritance(row.uuid, row.name, json.dumps(row.own_groups))
        for row in rows
    }


def find_link(session: Session, profile_id: int) -> Link | None:
    """Return the link of a profile to its parent; None: it extends no other one."""
    return session.scalar(select(Link).where(Link.device_profile_id == profile_id))


def store_link(
    session: Session, uuid: str, parent_uuid: str, own_groups: Sequence[Any]
) -> None:
    """Store what a profile extends, and its own groups."""
    ids = dict(
        session.execute(
            select(Row.uuid, Row.id).where(Row.uuid.in_([uuid, parent_uuid]))
        ).all()
    )
    delete_link(session, ids[uuid])
    row = {'device_profile_id': ids[uuid], 'parent_id': ids[parent_uuid]}
    change(session, insert(Link).values(**row, own_groups=list(own_groups)))


def delete_link(session: Session, profile_id: int) -> None:
    """Let a profile extend no other one. Its groups do not change."""
    change(session, delete_rows(Link).where(Link.device_profile_id == profile_id))


# --- chains ---------------------------------------------------------------------------


def count_ancestors(session: Session, profile_id: int) -> int:
    """Return the number of profiles that a profile extends directly or indirectly."""
    return len(_list_ancestors(session, profile_id))


def check_new_parent(session: Session, profile_id: int, parent_id: int) -> None:
    """Check that an existing profile may extend another one.

    The ancestors need no lock. A change of one of them locks all its descendants, and
    therefore waits for the lock of the parent.

    :param parent_id: of a row that the caller has locked
    :raises InvalidDeviceProfile: the chain would be too long, or a cycle
    """
    ancestors = [parent_id, *_list_ancestors(session, parent_id)]
    if profile_id in ancestors:
        reason = 'extends names the profile itself, or one that extends it'
        raise InvalidDeviceProfile(reason=reason)
    check_length(len(ancestors) + 1 + _count_levels(session, profile_id))


def check_length(length: int) -> None:
    """Check the number of profiles of a chain.

    :raises InvalidDeviceProfile: the chain is too long
    """
    if length > MAX_CHAIN:
        reason = f'a chain of profiles that extend each other has at most {MAX_CHAIN}'
        raise InvalidDeviceProfile(reason=reason)


def _list_ancestors(session: Session, profile_id: int) -> list[int]:
    ancestors: list[int] = []
    parent_of = select(Link.parent_id).where
    while len(ancestors) <= MAX_CHAIN:
        parent_id = session.scalar(parent_of(Link.device_profile_id == profile_id))
        if parent_id is None:
            break
        ancestors.append(parent_id)
        profile_id = parent_id
    return ancestors


def _count_levels(session: Session, profile_id: int) -> int:
    """Lock the descendants of a profile and return the number of their levels."""
    ids = [profile_id]
    for level in range(MAX_CHAIN + 1):
        ids = [row.id for row, _ in _lock_children(session, ids)]
        if not ids:
            return level
    return MAX_CHAIN


# Any: the row of a profile and its link.
def _lock_children(session: Session, parent_ids: Sequence[int]) -> list[Any]:
    """Lock the children of some profiles and return their rows with their links."""
    statement = (
        select(Row, Link)
        .join(Link, Link.device_profile_id == Row.id)
        .where(Link.parent_id.in_(parent_ids))
        .order_by(Row.id)
        # The link, too: own groups that PostgreSQL has read before it waited for the
        # lock may be former ones.
        .with_for_update()
    )
    return list(session.execute(statement).all())


# --- changes of a parent --------------------------------------------------------------


def plan_descendants(
    session: Session, profile_id: int, after: DeviceProfile, limits: Limits
) -> tuple[Descendant, ...]:
    """Lock all descendants and return those whose groups change.

    :param after: the profile after its change
    :raises InvalidDescendants: groups of a descendant would be invalid
    """
    plan: list[Descendant] = []
    faults: list[str] = []
    parents = {profile_id: after}
    while parents:
        changed: dict[int, DeviceProfile] = {}
        for row, link in _lock_children(session, list(parents)):
            before = read_profile(row)
            try:
                flat = flatten_groups(parents[link.parent_id], link.own_groups, limits)
            except InvalidDeviceProfile as error:
                faults.append(f'{before.name}: {error.kwargs["reason"]}')
                continue
            child = replace(before, groups=flat.groups, alternatives=flat.alternatives)
            if child != before:
                changed[row.id] = child
                plan.append(Descendant(row.id, before, child))
        parents = changed
    if faults:
        reason = '; '.join(faults[:_MOST_NAMES])
        raise InvalidDescendants(name=after.name, reason=reason)
    return tuple(plan)


def store_descendants(session: Session, plan: Sequence[Descendant]) -> None:
    """Store the new groups of descendants; each of them counts it as a change."""
    for item in plan:
        values: Mapping[str, Any] = {
            'groups': [dict(group) for group in item.after.groups],
            'alternatives': store_alternatives(item.after.alternatives),
            'updated_at': now(),
            'generation': item.before.generation + 1,
        }
        change(session, update(Row).where(Row.id == item.id).values(**values))
        reset_choice(session, item.id)
    if plan:
        sides = (side for item in plan for side in (item.before, item.after))
        schedule_evaluation(session, *map(list_all_groups, sides))
        ids = [item.id for item in plan]
        outbox.add_profiles(session, Row.id.in_(ids), UPDATED)


def reset_choice(session: Session, profile_id: int) -> None:
    """Delete the choice of alternatives: its indexes are those of former groups."""
    of_profile = ProfileChoice.device_profile_id == profile_id
    change(session, delete_rows(ProfileChoice).where(of_profile))


def release_children(session: Session, profiles: Mapping[int, str]) -> None:
    """Delete the links between profiles that are about to be deleted.

    :param profiles: names by id, of rows that the caller has locked
    :raises DeviceProfileIsExtended: another profile extends one of them
    """
    links = session.execute(
        select(Row.id, Row.name, Link.parent_id)
        .join(Link, Link.device_profile_id == Row.id)
        .where(Link.parent_id.in_(profiles))
        .order_by(Row.name)
    ).all()
    for link in links:
        if link.id not in profiles:
            siblings = [
                item.name
                for item in links
                if item.parent_id == link.parent_id and item.id not in profiles
            ]
            children = ', '.join(siblings[:_MOST_NAMES])
            name = profiles[link.parent_id]
            raise DeviceProfileIsExtended(name=name, children=children)
    for link in links:
        delete_link(session, link.id)
