# SPDX-License-Identifier: Apache-2.0
"""Device profiles of Cyborg."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from cyborg_lite.cyborg_import.converters.renames import migrate_group
from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.plan import StoredRows, Table
from cyborg_lite.cyborg_import.source_rows import SourceProfile
from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Limits
from cyborg_lite.model.profiles.grammar import parse_profile

# Cyborg has no limits; these keep the rows within their columns.
_LIMITS: Final = Limits(
    groups=1000, accelerators=100_000, description=16_000, value=16_000
)


def convert_profiles(
    rows: Iterable[SourceProfile], stored: StoredRows, notes: Notes
) -> dict[int, DeviceProfile]:
    """Return the device profiles that can be imported, by id in the source."""
    profiles: dict[int, DeviceProfile] = {}
    for row in rows:
        try:
            profile = _parse(row, notes)
        except InvalidDeviceProfile as error:
            notes.refuse(Table.PROFILES, row.uuid, f'{row.name}: {error.text}')
            continue
        owner = stored.profile_names.get(profile.name, profile.uuid)
        if owner != profile.uuid and not stored.has(Table.PROFILES, profile.uuid):
            reason = f'Device profile {owner} has or had the name {row.name}.'
            notes.refuse(Table.PROFILES, row.uuid, reason)
            continue
        profiles[row.id] = _migrate(profile, notes)
    return profiles


def _parse(row: SourceProfile, notes: Notes) -> DeviceProfile:
    """Return the profile.

    :raises InvalidDeviceProfile: the profile cannot be stored
    """
    body = {
        'uuid': row.uuid,
        'name': row.name,
        'description': row.description,
        'groups': _read_groups(row.profile_json),
    }
    return parse_profile(
        body, _LIMITS, fresh_uuid=row.uuid, moment=notes.date(row.created_at)
    )


def _migrate(profile: DeviceProfile, notes: Notes) -> DeviceProfile:
    """Return the profile with the present names of keys, classes and traits."""
    migrations = [migrate_group(group) for group in profile.groups]
    for item in migrations:
        texts = [
            f'{former} is now {name or "absent"}.' for former, name in item.changes
        ]
        if item.problem:
            texts.append(f'{item.problem}. Replace the profile.')
        for text in texts:
            notes.change(Table.PROFILES, profile.uuid, f'{profile.name}: {text}')
    return replace(profile, groups=tuple(item.group for item in migrations))


def _read_groups(text: str) -> Any:
    """Return the groups in any form; the grammar of profiles checks them."""
    try:
        document = json.loads(text)
    except ValueError:
        raise InvalidDeviceProfile(reason='profile_json is no JSON') from None
    return document.get('groups') if isinstance(document, dict) else None
