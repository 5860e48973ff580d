# SPDX-License-Identifier: Apache-2.0
"""How a client writes a device profile: from JSON to a profile, or what is wrong.

The keys inside of a group are in ``group_keys.py``.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model import group_keys, uuids
from cyborg_lite.model.device_profiles import (
    DeviceProfile,
    Limits,
    ProfileChange,
    amounts,
)
from cyborg_lite.model.text import is_storable, shown

_NAME: Final = re.compile(r'[A-Za-z0-9_-]+')
_SWITCHES: Final = ('enabled', 'is_public')


def is_name(text: str) -> bool:
    """Whether a profile could bear that name."""
    return _NAME.fullmatch(text) is not None


def parse(
    wanted: object, limits: Limits, *, fresh_uuid: str, moment: datetime
) -> DeviceProfile:
    """The profile that one element of a request body describes.

    Unknown keys of the element are ignored. ``fresh_uuid`` is used unless the client
    chose one; ``moment`` is when the profile was made.

    :raises InvalidDeviceProfile: with the field and what it may be
    """
    if not isinstance(wanted, Mapping):
        raise InvalidDeviceProfile(reason='it must be an object')
    return DeviceProfile(
        uuid=_uuid(wanted.get('uuid'), fresh_uuid),
        name=_name(wanted.get('name'), limits.name),
        description=_description(wanted.get('description'), limits.description),
        groups=_groups(wanted.get('groups'), limits),
        created_at=moment,
    )


def parse_change(wanted: Mapping[str, object], limits: Limits) -> ProfileChange:
    """What a client wants to be otherwise: new values by the names of their fields.

    :raises InvalidDeviceProfile: with the field and what it may be
    """
    values: dict[str, Any] = {}  # of the type that each field has
    for field, value in wanted.items():
        if field == 'name':
            values[field] = _name(value, limits.name)
        elif field == 'description':
            values[field] = _description(value, limits.description)
        elif field == 'groups':
            values[field] = _groups(value, limits)
        elif field in _SWITCHES:
            values[field] = _switch(field, value)
        else:
            raise InvalidDeviceProfile(reason=f'{shown(field)} cannot be changed')
    return ProfileChange(fields=tuple(values), **values)


def _uuid(given: object, fresh: str) -> str:
    if given is None:
        return fresh
    found = uuids.canonical(given) if isinstance(given, str) else None
    if found is None:
        raise InvalidDeviceProfile(reason='uuid must be a UUID')
    return found


def _name(given: object, longest: int) -> str:
    if not isinstance(given, str) or not is_name(given) or len(given) > longest:
        raise InvalidDeviceProfile(
            reason=f'name must be a string of 1 to {longest} letters, digits, '
            f'hyphens and underscores'
        )
    return given


def _description(given: object, longest: int) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or len(given) > longest or not is_storable(given):
        raise InvalidDeviceProfile(
            reason=f'description must be null or a string of at most {longest} '
            f'characters, without NUL'
        )
    return given


def _switch(field: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise InvalidDeviceProfile(reason=f'{field} must be true or false')
    return given


def _groups(given: object, limits: Limits) -> tuple[dict[str, str], ...]:
    if not isinstance(given, list) or not 1 <= len(given) <= limits.groups:
        raise InvalidDeviceProfile(
            reason=f'groups must be a list of 1 to {limits.groups} objects'
        )
    groups = tuple(
        _group(f'groups[{index}]', group, limits) for index, group in enumerate(given)
    )
    total = sum(amount for group in groups for _, amount in amounts(group))
    if total > limits.accelerators:
        raise InvalidDeviceProfile(
            reason=f'groups ask for {total} accelerators, '
            f'at most {limits.accelerators} are allowed'
        )
    return groups


def _group(where: str, given: object, limits: Limits) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise InvalidDeviceProfile(reason=f'{where} must be an object')
    group: dict[str, str] = {}
    for key, value in given.items():
        entry = group_keys.read(where, key, value, limits)
        if entry is None:
            continue
        if entry[0] in group:
            raise InvalidDeviceProfile(reason=f'{where} has {entry[0]} twice')
        group[entry[0]] = entry[1]
    if not any(amounts(group)):
        raise InvalidDeviceProfile(reason=f'{where} has no resources: key')
    if 'accel:bitstream_id' in group and 'accel:function_id' in group:
        raise InvalidDeviceProfile(
            reason=f'{where} has both accel:bitstream_id and accel:function_id'
        )
    return group
