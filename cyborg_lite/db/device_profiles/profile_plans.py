# SPDX-License-Identifier: Apache-2.0
"""Plans of new and changed device profiles, with the groups that they inherit.

A plan locks the rows that it depends on. It writes nothing.
"""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy.orm import Session

from cyborg_lite.db.device_profiles import inheritance
from cyborg_lite.db.device_profiles.inheritance import Descendant
from cyborg_lite.db.device_profiles.profile_rows import (
    lock_parent,
    lock_row,
    read_profile,
)
from cyborg_lite.db.tables import DeviceProfile as Row
from cyborg_lite.db.tables import DeviceProfileParent as Link
from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model.device_profiles import (
    DeviceProfile,
    Inheritance,
    Limits,
    ProfileChange,
)
from cyborg_lite.model.own_groups import flatten_groups, load_own_groups
from cyborg_lite.model.profile_errors import (
    DeviceProfileExtends,
    DeviceProfileHasAlternatives,
)

_INHERITANCE: Final = frozenset({'extends', 'own_groups'})


def flatten_profiles(
    session: Session,
    profiles: Sequence[DeviceProfile],
    viewer: str | None,
    limits: Limits,
) -> tuple[DeviceProfile, ...]:
    """Return new profiles with the groups that they inherit, and lock their parents.

    :raises InvalidDeviceProfile: the parent is unknown, the chain is too long, or the
        groups are invalid together
    """
    depths: dict[str, int] = {}  # number of ancestors, by uuid
    flat: dict[str, DeviceProfile] = {}  # by uuid
    for profile in profiles:
        depths[profile.uuid] = 0
        flat[profile.uuid] = profile
        source = profile.inheritance
        if source is None:
            continue
        # A profile may extend one before it in the same request.
        parent = _find_by_name(tuple(flat.values()), source.parent)
        if parent is None or parent is profile:
            row = lock_parent(session, source.parent, viewer)
            parent = read_profile(row)
            depths[parent.uuid] = inheritance.count_ancestors(session, row.id)
        depths[profile.uuid] = depths[parent.uuid] + 1
        inheritance.check_length(depths[profile.uuid] + 1)
        flat[profile.uuid] = _inherit(profile, parent, source.own_groups, limits)
    return tuple(flat[profile.uuid] for profile in profiles)


def _find_by_name(
    profiles: Sequence[DeviceProfile], identifier: str
) -> DeviceProfile | None:
    """Return the profile with a uuid, or else with a name."""
    matches = [profile for profile in profiles if profile.uuid == identifier]
    matches += [profile for profile in profiles if profile.name == identifier]
    return matches[0] if matches else None


def _inherit(
    profile: DeviceProfile, parent: DeviceProfile, own_groups: str, limits: Limits
) -> DeviceProfile:
    """Return a profile with the groups that it inherits."""
    flat = flatten_groups(parent, load_own_groups(own_groups), limits)
    return dataclasses.replace(
        profile,
        groups=flat.groups,
        alternatives=flat.alternatives,
        inheritance=Inheritance(parent.uuid, parent.name, own_groups),
    )


def preview_change(
    session: Session,
    uuid: str,
    changes: ProfileChange,
    viewer: str | None,
    limits: Limits,
) -> tuple[DeviceProfile, ...]:
    """Return the profile and those that extend it as a change would make them.

    :raises: the errors of ``update_profile``
    """
    row = lock_row(session, uuid, viewer)
    plan = plan_change(session, row, changes, viewer, limits)
    return plan.after, *(item.after for item in plan.descendants)


@dataclass(frozen=True, slots=True)
class Plan:
    """A change of a profile."""

    before: DeviceProfile
    after: DeviceProfile  # with inheritance only if it is to be stored
    values: dict[str, Any]  # of the fields that change
    descendants: tuple[Descendant, ...] = ()


def plan_change(
    session: Session,
    row: Row,
    changes: ProfileChange,
    viewer: str | None,
    limits: Limits,
) -> Plan:
    """Return what a change means for a locked profile and for its descendants."""
    before = read_profile(row)
    names = set(changes.fields) - _INHERITANCE
    values: dict[str, Any] = {
        field: getattr(changes, field) for field in changes.fields if field in names
    }
    after = dataclasses.replace(before, **values)
    if 'groups' in values and before.alternatives and 'alternatives' not in values:
        raise DeviceProfileHasAlternatives(name=before.name)
    if not (_INHERITANCE | {'groups'}).isdisjoint(changes.fields):
        source = _select_source(session, row, changes, viewer)
        after = after if source is None else _inherit(after, *source, limits)
    if (after.groups, after.alternatives) == (before.groups, before.alternatives):
        return Plan(before, after, values)
    values |= {'groups': after.groups, 'alternatives': after.alternatives}
    descendants = inheritance.plan_descendants(session, row.id, after, limits)
    return Plan(before, after, values, descendants)


def _select_source(
    session: Session, row: Row, changes: ProfileChange, viewer: str | None
) -> tuple[DeviceProfile, str] | None:
    """Return the parent of a changed profile and the own groups of the profile.

    :returns: None: the profile does not extend another one
    """
    link = inheritance.find_link(session, row.id)
    if 'extends' in changes.fields and changes.extends is None:
        link = None
    if changes.extends is None and link is None:
        if 'own_groups' in changes.fields:
            reason = 'own_groups requires that the profile extends another one'
            raise InvalidDeviceProfile(reason=reason)
        return None
    if _INHERITANCE.isdisjoint(changes.fields):
        raise DeviceProfileExtends(name=row.name)
    if 'groups' in changes.fields:
        reason = 'a profile that extends another one has own_groups instead of groups'
        raise InvalidDeviceProfile(reason=reason)
    parent = _find_parent(session, row.id, link, changes, viewer)
    return parent, changes.own_groups or _read_own_groups(link)


def _find_parent(
    session: Session,
    profile_id: int,
    link: Link | None,
    changes: ProfileChange,
    viewer: str | None,
) -> DeviceProfile:
    """Return the new parent of a profile, or else the present one."""
    if changes.extends is not None:
        row = lock_parent(session, changes.extends, viewer)
        inheritance.check_new_parent(session, profile_id, row.id)
        return read_profile(row)
    # Not locked: a change of the parent waits for the lock of this profile.
    assert link is not None
    return read_profile(session.get_one(Row, link.parent_id))


def _read_own_groups(link: Link | None) -> str:
    if link is None:
        reason = 'own_groups is required when a profile begins to extend another one'
        raise InvalidDeviceProfile(reason=reason)
    return json.dumps(link.own_groups)
