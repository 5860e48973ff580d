# SPDX-License-Identifier: Apache-2.0
"""Device profiles of Cyborg."""

import json
from collections.abc import Iterable
from typing import Any, Final

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
        profiles[row.id] = profile
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


def _read_groups(text: str) -> Any:
    """Return the groups in any form; the grammar of profiles checks them."""
    try:
        document = json.loads(text)
    except ValueError:
        raise InvalidDeviceProfile(reason='profile_json is no JSON') from None
    return document.get('groups') if isinstance(document, dict) else None
