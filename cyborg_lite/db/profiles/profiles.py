# SPDX-License-Identifier: Apache-2.0
"""Device profiles: create, list, update and delete; their names, and who sees them.

A profile keeps its former names, because flavors may still contain them. Two concurrent
clients can give one profile the former name of another. Then the name belongs to the
profile that has it now.

A viewer is the project that must be able to see the profiles; None: all are visible.
A profile that does not exist or is not visible raises ``DeviceProfileNotFound``.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from oslo_db.exception import DBDuplicateEntry, DBReferenceError
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Insert,
    String,
    Table,
    bindparam,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import delete as delete_rows
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.core.change import change, check_generation
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.query import (
    Collection,
    as_strings,
    convert_rows,
    list_page,
    name_columns,
)
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import (
    Arq,
    DeviceProfileAccess,
    DeviceProfileName,
    ProfileChoice,
    ProfilePromise,
    now,
)
from cyborg_lite.db.core.tables import DeviceProfile as Row
from cyborg_lite.db.jobs import outbox
from cyborg_lite.db.profiles.selectors import schedule_evaluation
from cyborg_lite.errors.profiles import (
    DeviceProfileExists,
    DeviceProfileHasAlternatives,
    DeviceProfileInUse,
    DeviceProfileNotFound,
)
from cyborg_lite.model.notifications import CREATED, DELETED, UPDATED
from cyborg_lite.model.profiles.alternatives import list_all_groups
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import SORT_KEYS, Query
from cyborg_lite.model.text import is_storable


# Any: JSON.
def _read_groups(groups: Any) -> tuple[dict[str, str], ...]:
    return tuple(as_strings(group) for group in groups)


PROFILE: Final = Record(
    DeviceProfile,
    Row,
    groups=From(_read_groups, Row.groups),
    alternatives=From(
        lambda lists: tuple(map(_read_groups, lists or ())), Row.alternatives
    ),
)


def _store_alternatives(
    alternatives: Sequence[Sequence[Mapping[str, str]]],
) -> list[list[dict[str, str]]] | None:
    """Return the column; None: no group has alternatives."""
    return [[dict(group) for group in groups] for groups in alternatives] or None


# --- conditions ---


def is_visible_to(viewer: str | BindParameter[str] | None) -> ColumnElement[bool]:
    """Return SQL that is true for the profiles that a project can see.

    :param viewer: the project; None: all profiles are visible
    """
    if viewer is None:
        return true()
    granted = select(DeviceProfileAccess.device_profile_id).where(
        DeviceProfileAccess.project_id == viewer
    )
    return or_(Row.is_public.is_(True), Row.id.in_(granted))


_NAMED: Final = aliased(Row)


def has_name(name: str | BindParameter[str]) -> ColumnElement[bool]:
    """Return SQL that is true for the profile with a current or former name.

    Both lookups use unique indexes.
    """
    current = select(_NAMED.id).where(_NAMED.name == name)
    former = select(DeviceProfileName.device_profile_id).where(
        DeviceProfileName.name == name
    )
    profile_id = func.coalesce(current.scalar_subquery(), former.scalar_subquery())
    return Row.id == profile_id


def _has_any_name(
    names: Sequence[str] | BindParameter[Sequence[str]],
) -> ColumnElement[bool]:
    """Return SQL that is true for profiles with any of the current or former names."""
    is_current = exists().where(_NAMED.name == DeviceProfileName.name)
    former = select(DeviceProfileName.device_profile_id).where(
        DeviceProfileName.name.in_(names), ~is_current
    )
    return or_(Row.name.in_(names), Row.id.in_(former))


# --- locks ---


def lock_profile(
    session: Session, uuid: str, viewer: str | None
) -> tuple[int, DeviceProfile]:
    """Lock a profile; return the id of its row, and the profile."""
    statement = PROFILE.select().where(Row.uuid == uuid, is_visible_to(viewer))
    row = session.execute(statement.with_for_update(of=Row)).one_or_none()
    if row is None:
        raise DeviceProfileNotFound(name=uuid)
    return row.row_id, PROFILE.read(row)


_PROFILES: Final = Collection(
    Row,
    filters=name_columns(Row, 'uuid', 'enabled', 'is_public'),
    sorts=name_columns(Row, *SORT_KEYS['device_profiles']),
    prefixes={'name_prefix': Row.name},
)


def create_profile(session: Session, profile: DeviceProfile) -> DeviceProfile:
    """Store a profile and return it with its creation time.

    :raises DeviceProfileExists: another profile has the uuid, or has or had the name
    """
    created = dataclasses.replace(profile, created_at=now(), generation=0)
    row = PROFILE.write(created) | {
        'groups': [dict(group) for group in profile.groups],
        'alternatives': _store_alternatives(profile.alternatives),
    }
    try:
        inserted = change(session, insert_unless_taken(row))
    except DBDuplicateEntry as error:
        raise DeviceProfileExists(name=_duplicate(profile, error)) from None
    if not inserted:
        raise DeviceProfileExists(name=profile.name)
    outbox.add_profiles(session, Row.uuid == profile.uuid, CREATED)
    return created


def create_profiles(
    session: Session, profiles: Sequence[DeviceProfile]
) -> tuple[DeviceProfile, ...]:
    """Store all profiles or none.

    :raises DeviceProfileExists: another profile has a uuid, or has or had a name
    """
    created = tuple(create_profile(session, profile) for profile in profiles)
    schedule_evaluation(session, *map(list_all_groups, profiles))
    return created


def _duplicate(profile: DeviceProfile, error: DBDuplicateEntry) -> str:
    """Return the uuid or the name, whichever is the duplicate.

    Only the error text of the database contains this.
    """
    text = str(error.inner_exception.orig)
    is_uuid = 'uq_device_profiles_uuid' in text or 'device_profiles.uuid' in text
    return profile.uuid if is_uuid else profile.name


def list_profiles(
    session: Session, query: Query, viewer: str | None = None
) -> tuple[DeviceProfile, ...]:
    """Return the profiles that match the query, in one SELECT.

    The filter ``name`` matches current and former names.
    """
    filters = dict(query.filters)
    names = filters.pop('name', None)
    if names is not None and query == Query(filters={'name': names}):
        # A row that cannot be read is skipped below.
        with suppress(ValueError, TypeError):
            return _list_named_profiles(session, names, viewer)
    statement = PROFILE.select()
    collection = dataclasses.replace(_PROFILES, visible=is_visible_to(viewer))
    if names is not None:
        storable = [name for name in names if is_storable(name)]
        statement = statement.where(_has_any_name(storable))
    query = dataclasses.replace(query, filters=filters)
    return list_page(session, statement, query, collection, PROFILE.read)


def preview_change(
    session: Session, uuid: str, changes: ProfileChange, viewer: str | None
) -> DeviceProfile:
    """Return the profile as a change would make it.

    :raises DeviceProfileHasAlternatives: see ``update_profile``
    """
    _number, before = lock_profile(session, uuid, viewer)
    return _apply_change(before, changes)


def _apply_change(before: DeviceProfile, changes: ProfileChange) -> DeviceProfile:
    values = {field: getattr(changes, field) for field in changes.fields}
    if 'groups' in values and before.alternatives and 'alternatives' not in values:
        raise DeviceProfileHasAlternatives(name=before.name)
    return dataclasses.replace(before, **values)


def update_profile(
    session: Session,
    uuid: str,
    changes: ProfileChange,
    viewer: str | None = None,
    generation: int | None = None,
) -> DeviceProfile:
    """Change a profile and return it. ARQs that were created from it do not change.

    :param generation: that the profile must have; None: any
    :raises GenerationConflict: the profile has another generation
    :raises DeviceProfileExists: another profile has or had the new name
    :raises DeviceProfileHasAlternatives: the change has groups without alternatives,
        of a client that cannot read those of the profile
    """
    number, before = lock_profile(session, uuid, viewer)
    check_generation(session, Row, uuid, generation)
    after = dataclasses.replace(
        _apply_change(before, changes),
        updated_at=now(),
        generation=before.generation + 1,
    )
    fields = {*changes.fields, 'updated_at', 'generation'}
    values = PROFILE.write(after, fields)
    if 'groups' in values:
        values['groups'] = [dict(group) for group in after.groups]
        values['alternatives'] = _store_alternatives(after.alternatives)
        values['former_groups'] = [dict(group) for group in before.groups]
        values['groups_changed_at'] = now_utc()
        schedule_evaluation(session, list_all_groups(before), list_all_groups(after))
        _delete_choice(session, number)
    try:
        change(session, update(Row).where(Row.uuid == uuid).values(**values))
    except DBDuplicateEntry:
        raise DeviceProfileExists(name=after.name) from None
    if after.name != before.name:
        rename_profile(session, number, before.name, after.name)
    outbox.add_profiles(session, Row.uuid == uuid, UPDATED)
    return after


def _delete_choice(session: Session, profile_id: int) -> None:
    """Delete the choices of alternatives: their indexes are those of former groups."""
    for table in (ProfileChoice, ProfilePromise):
        of_profile = table.device_profile_id == profile_id
        change(session, delete_rows(table).where(of_profile))


def delete_profiles(
    session: Session,
    names: Sequence[str],
    viewer: str | None = None,
    generation: int | None = None,
) -> None:
    """Delete all profiles or none.

    :param names: uuids or current names. Former names are not accepted: a client that
        uses one may not know that the profile was renamed.
    :param generation: that each profile must have; None: any
    :raises GenerationConflict: a profile has another generation
    :raises DeviceProfileInUse: an ARQ of a profile exists
    """
    matches = or_(Row.uuid.in_(names), Row.name.in_(names))
    statement = (
        PROFILE.select()
        .where(matches, is_visible_to(viewer))
        .order_by(Row.id)
        # Of two concurrent calls the second waits, and does not find the profile.
        .with_for_update(of=Row)
    )
    rows = [(row.row_id, PROFILE.read(row)) for row in session.execute(statement)]
    by_name = {profile.name: (number, profile) for number, profile in rows}
    # A name may equal the uuid of another profile. The uuid has precedence.
    by_name |= {profile.uuid: (number, profile) for number, profile in rows}
    for name in names:
        if name not in by_name:
            raise DeviceProfileNotFound(name=name)
        check_generation(session, Row, by_name[name][1].uuid, generation)
    deleting = dict(by_name[name] for name in names)
    deleted = {number: profile.name for number, profile in deleting.items()}
    schedule_evaluation(session, *map(list_all_groups, deleting.values()))
    _check_unused(session, deleted)
    outbox.add_profiles(session, Row.id.in_(deleted), DELETED)
    try:
        change(session, delete_rows(Row).where(Row.id.in_(deleted)))
    except DBReferenceError:
        # An ARQ was created from one of the profiles since the check.
        raise DeviceProfileInUse(name=', '.join(deleted.values())) from None


def _check_unused(session: Session, profiles: dict[int, str]) -> None:
    """Check that no ARQ of the profiles exists.

    :param profiles: names by id
    """
    of_profiles = Arq.device_profile_id.in_(profiles)
    profile_id = session.scalar(
        select(Arq.device_profile_id).where(of_profiles).limit(1)
    )
    if profile_id is not None:
        raise DeviceProfileInUse(name=profiles[profile_id])


# --- access of projects to private profiles ---


_ACCESS: Final = Collection(DeviceProfileAccess, filters={})


def list_projects(
    session: Session, uuid: str, query: Query, viewer: str | None
) -> tuple[str, ...]:
    """Return a page of the projects with access to a profile, in order of the grants.

    :raises InvalidInput: the marker is no cursor of this list
    """
    profile_id, _ = lock_profile(session, uuid, viewer)
    statement = select(
        DeviceProfileAccess.id.label('row_id'), DeviceProfileAccess.project_id
    ).where(DeviceProfileAccess.device_profile_id == profile_id)
    return list_page(session, statement, query, _ACCESS, lambda row: row.project_id)


def grant_access(
    session: Session, uuid: str, projects: Sequence[str], viewer: str | None
) -> None:
    """Grant access to projects; ignore projects that already have access."""
    present = list_projects(session, uuid, Query(), viewer)
    profile_id, _ = lock_profile(session, uuid, viewer)
    added = [project for project in dict.fromkeys(projects) if project not in present]
    rows = [
        {'device_profile_id': profile_id, 'project_id': project} for project in added
    ]
    if rows:
        session.execute(insert(DeviceProfileAccess), rows)


def revoke_access(
    session: Session, uuid: str, projects: Sequence[str], viewer: str | None
) -> None:
    """Revoke access of projects; ignore projects without access."""
    profile_id, _ = lock_profile(session, uuid, viewer)
    revoked = (
        DeviceProfileAccess.device_profile_id == profile_id,
        DeviceProfileAccess.project_id.in_(projects),
    )
    change(session, delete_rows(DeviceProfileAccess).where(*revoked))


# --- current and former names ---

# Built once: Nova reads a profile by name for each instance.
_BY_NAME: Final = (
    PROFILE.select()
    .where(_has_any_name(bindparam('names', type_=String, expanding=True)))
    .order_by(Row.id)
)
_VISIBLE_BY_NAME: Final = _BY_NAME.where(
    is_visible_to(bindparam('viewer', type_=String))
)


def _list_named_profiles(
    session: Session, names: Sequence[str], viewer: str | None
) -> tuple[DeviceProfile, ...]:
    """Return the profiles with any of the current or former names, in one SELECT.

    :raises ValueError: a row has an invalid value
    :raises TypeError: a row has a value of another type
    """
    statement = _BY_NAME if viewer is None else _VISIBLE_BY_NAME
    storable = [name for name in names if is_storable(name)]
    parameters = {'names': storable, 'viewer': viewer}
    rows = session.connection().execute(statement, parameters).all()
    return tuple(convert_rows(rows, Row, PROFILE.read))


def insert_unless_taken(row: dict[str, Any]) -> Insert:
    """Return an INSERT of a profile that inserts nothing if its name is a former name.

    :param row: values by column
    """
    table = cast(Table, Row.__table__)
    values = [literal(row[name], table.c[name].type) for name in row]
    # MariaDB does not accept WHERE without FROM.
    once = select(literal(1).label('once')).subquery()
    is_former = exists().where(DeviceProfileName.name == row['name'])
    return insert(Row).from_select(
        list(row), select(*values).select_from(once).where(~is_former)
    )


def rename_profile(session: Session, profile_id: int, former: str, name: str) -> None:
    """Store the former name; free the new name if the same profile had it before.

    :raises DeviceProfileExists: the new name is a former name of another profile
    """
    same_name = DeviceProfileName.name == name
    owner = session.scalar(select(DeviceProfileName.device_profile_id).where(same_name))
    if owner not in (None, profile_id):
        raise DeviceProfileExists(name=name)
    if owner is not None:
        change(session, delete_rows(DeviceProfileName).where(same_name))
    row = {'name': former, 'device_profile_id': profile_id}
    try:
        session.execute(insert(DeviceProfileName).values(**row))
    except DBDuplicateEntry:
        raise DeviceProfileExists(name=former) from None
