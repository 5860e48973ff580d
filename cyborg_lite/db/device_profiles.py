# SPDX-License-Identifier: Apache-2.0
"""Device profiles. Who sees them is in profile_access.py, names in profile_names.py."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Final

from oslo_db.exception import DBDuplicateEntry, DBReferenceError
from sqlalchemy import delete as delete_rows
from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import profile_names
from cyborg_lite.db.change import change
from cyborg_lite.db.profile_access import visible_to
from cyborg_lite.db.query import Collection, page
from cyborg_lite.db.reading import Rows, filled, readable, texts
from cyborg_lite.db.tables import Arq, now
from cyborg_lite.db.tables import DeviceProfile as Row
from cyborg_lite.exceptions import (
    DeviceProfileExists,
    DeviceProfileInUse,
    DeviceProfileNotFound,
)
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import is_storable

_PROFILES: Final = Collection(
    Row,
    filters={
        'uuid': Row.uuid,
        'enabled': Row.enabled,
        'is_public': Row.is_public,
    },
    sorts={
        'uuid': Row.uuid,
        'name': Row.name,
        'description': Row.description,
        'created_at': Row.created_at,
        'updated_at': Row.updated_at,
        'enabled': Row.enabled,
        'is_public': Row.is_public,
    },
)


def create(session: Session, profile: DeviceProfile) -> DeviceProfile:
    """The profile as it is kept: with our time.

    :raises DeviceProfileExists: the uuid is taken, or the name is or was another's
    """
    row = {
        'uuid': profile.uuid,
        'name': profile.name,
        'description': profile.description,
        'groups': [dict(group) for group in profile.groups],
        'enabled': profile.enabled,
        'is_public': profile.is_public,
        'created_at': now(),
    }
    try:
        made = change(session, profile_names.insertion(row))
    except DBDuplicateEntry as error:
        raise DeviceProfileExists(name=_taken(profile, error)) from None
    if not made:
        raise DeviceProfileExists(name=profile.name)
    return _profile(Row(**row))


def create_all(
    session: Session, profiles: Sequence[DeviceProfile]
) -> tuple[DeviceProfile, ...]:
    """As ``create``, of all or of none."""
    return tuple(create(session, profile) for profile in profiles)


def _taken(profile: DeviceProfile, error: DBDuplicateEntry) -> str:
    """Which of its two names; only the text of the database says it."""
    said = str(error.inner_exception.orig)
    of_uuid = 'uq_device_profiles_uuid' in said or 'device_profiles.uuid' in said
    return profile.uuid if of_uuid else profile.name


def listed(
    session: Session, query: Query, viewer: str | None = None
) -> tuple[DeviceProfile, ...]:
    """Those that fit, in one SELECT. Former names find them too.

    :param viewer: the project that sees them; None sees all
    :raises InvalidInput: an unknown filter, sort key or marker
    """
    wanted = select(Row).where(visible_to(viewer))
    filters = dict(query.filters)
    names = filters.pop('name', None)
    if names is not None:
        storable = [name for name in names if is_storable(name)]
        wanted = wanted.where(profile_names.bears_one_of(storable))
    query = dataclasses.replace(query, filters=filters)

    def read(part: Query) -> tuple[Rows, Iterable[DeviceProfile]]:
        rows = page(session, wanted, part, _PROFILES)
        return rows, readable(rows, _profile)

    return filled(query, read)


def change_one(
    session: Session, uuid: str, wanted: ProfileChange, viewer: str | None = None
) -> DeviceProfile:
    """The profile as it is now. Requests that were made from it stay as they are.

    :raises DeviceProfileNotFound: no such profile, or none that the viewer sees
    :raises DeviceProfileExists: another has or had the name
    """
    chosen = select(Row).where(Row.uuid == uuid, visible_to(viewer))
    row = session.scalar(chosen.with_for_update(of=Row))
    if row is None:
        raise DeviceProfileNotFound(name=uuid)
    values: dict[str, Any] = {field: getattr(wanted, field) for field in wanted.fields}
    values['updated_at'] = now()
    before = _profile(row)
    after = dataclasses.replace(before, **values)
    if 'groups' in values:
        values['groups'] = [dict(group) for group in after.groups]
    try:
        change(session, update(Row).where(Row.uuid == uuid).values(**values))
    except DBDuplicateEntry:
        raise DeviceProfileExists(name=after.name) from None
    if after.name != before.name:
        profile_names.rename(session, row.id, before.name, after.name)
    return after


def delete(session: Session, names: Sequence[str], viewer: str | None = None) -> None:
    """All of them or none; each is a uuid or a name, but no former name.

    Who says a former name may not know what has become of the profile.

    :raises DeviceProfileNotFound: one is unknown
    :raises DeviceProfileInUse: an accelerator request was made from one
    """
    named = or_(Row.uuid.in_(names), Row.name.in_(names))
    chosen = select(Row.id, Row.uuid, Row.name).where(named, visible_to(viewer))
    rows = session.execute(chosen).all()
    by_name = {row.name: row for row in rows}
    # A name may look like the uuid of another profile; then the uuid is meant.
    by_name.update({row.uuid: row for row in rows})
    for name in names:
        if name not in by_name:
            raise DeviceProfileNotFound(name=name)
    wanted = {by_name[name].id: by_name[name].name for name in names}
    _check_unused(session, wanted)
    try:
        change(session, delete_rows(Row).where(Row.id.in_(wanted)))
    except DBReferenceError:
        # A request was made from one of them since we looked.
        raise DeviceProfileInUse(name=', '.join(wanted.values())) from None


def _check_unused(session: Session, profiles: dict[int, str]) -> None:
    of_them = Arq.device_profile_id.in_(profiles)
    used = session.scalar(select(Arq.device_profile_id).where(of_them).limit(1))
    if used is not None:
        raise DeviceProfileInUse(name=profiles[used])


def _profile(row: Row) -> DeviceProfile:
    return DeviceProfile(
        uuid=row.uuid,
        name=row.name,
        description=row.description,
        groups=tuple(texts(group) for group in row.groups),
        created_at=row.created_at,
        updated_at=row.updated_at,
        enabled=row.enabled,
        is_public=row.is_public,
    )
