# SPDX-License-Identifier: Apache-2.0
"""Grammar of device profiles: converts the JSON of a client or raises an error.

The grammar of the keys in a group is in ``group_keys.py``.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model import group_keys, uuids
from cyborg_lite.model.device_profiles import (
    DeviceProfile,
    Group,
    Limits,
    ProfileChange,
)
from cyborg_lite.model.text import format_value, is_storable

_NAME: Final = re.compile(r'[A-Za-z0-9_-]+')
_FLAGS: Final = ('enabled', 'is_public')


def is_valid_name(text: str) -> bool:
    """Check whether a text is a valid name of a profile."""
    return _NAME.fullmatch(text) is not None


def parse_profile(
    body: object, limits: Limits, *, fresh_uuid: str, moment: datetime
) -> DeviceProfile:
    """Return the profile that one element of a request body describes.

    Unknown keys of the element are ignored.

    :param fresh_uuid: uuid of the profile, unless the client chose one
    :param moment: time of creation
    :raises InvalidDeviceProfile: a field is invalid; the error names what is allowed
    """
    if not isinstance(body, Mapping):
        raise InvalidDeviceProfile(reason='it must be an object')
    return DeviceProfile(
        uuid=_uuid(body.get('uuid'), fresh_uuid),
        name=_name(body.get('name'), limits.name),
        description=_description(body.get('description'), limits.description),
        groups=_groups(body.get('groups'), limits),
        created_at=moment,
    )


def parse_profile_change(body: Mapping[str, object], limits: Limits) -> ProfileChange:
    """Return the change that a client requests.

    :param body: new values, by the names of their fields
    :raises InvalidDeviceProfile: a field is invalid; the error names what is allowed
    """
    values: dict[str, Any] = {}  # of the types of the fields
    for field, value in body.items():
        if field == 'name':
            values[field] = _name(value, limits.name)
        elif field == 'description':
            values[field] = _description(value, limits.description)
        elif field == 'groups':
            values[field] = _groups(value, limits)
        elif field in _FLAGS:
            values[field] = _flag(field, value)
        else:
            raise InvalidDeviceProfile(
                reason=f'{format_value(field)} cannot be changed'
            )
    return ProfileChange(fields=tuple(values), **values)


def _uuid(value: object, fresh: str) -> str:
    if value is None:
        return fresh
    uuid = uuids.normalize_uuid(value) if isinstance(value, str) else None
    if uuid is None:
        raise InvalidDeviceProfile(reason='uuid must be a UUID')
    return uuid


def _name(value: object, longest: int) -> str:
    if not isinstance(value, str) or not is_valid_name(value) or len(value) > longest:
        raise InvalidDeviceProfile(
            reason=f'name must be a string of 1 to {longest} letters, digits, '
            f'hyphens and underscores'
        )
    return value


def _description(value: object, longest: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest or not is_storable(value):
        raise InvalidDeviceProfile(
            reason=f'description must be null or a string of at most {longest} '
            f'characters, without NUL'
        )
    return value


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidDeviceProfile(reason=f'{field} must be true or false')
    return value


def _groups(value: object, limits: Limits) -> tuple[dict[str, str], ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= limits.groups:
        raise InvalidDeviceProfile(
            reason=f'groups must be a list of 1 to {limits.groups} objects'
        )
    groups = tuple(
        _group(f'groups[{index}]', group, limits) for index, group in enumerate(value)
    )
    total = sum(Group.parse(group).requirements.total for group in groups)
    if total > limits.accelerators:
        raise InvalidDeviceProfile(
            reason=f'groups ask for {total} accelerators, '
            f'at most {limits.accelerators} are allowed'
        )
    return groups


def _group(group_name: str, value: object, limits: Limits) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidDeviceProfile(reason=f'{group_name} must be an object')
    group: dict[str, str] = {}
    for key, item in value.items():
        entry = group_keys.parse_entry(group_name, key, item, limits)
        if entry is None:
            continue
        if entry[0] in group:
            raise InvalidDeviceProfile(reason=f'{group_name} has {entry[0]} twice')
        group[entry[0]] = entry[1]
    if not Group.parse(group).requirements.amounts:
        raise InvalidDeviceProfile(reason=f'{group_name} has no resources: key')
    if 'accel:bitstream_id' in group and 'accel:function_id' in group:
        raise InvalidDeviceProfile(
            reason=f'{group_name} has both accel:bitstream_id and accel:function_id'
        )
    return group
