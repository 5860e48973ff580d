# SPDX-License-Identifier: Apache-2.0
"""Grammar of device profiles: converts the JSON of a client or raises an error.

The grammar of the groups is in ``groups.py``.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cyborg_lite.model import uuids
from cyborg_lite.model.profiles.alternatives import KEY
from cyborg_lite.model.profiles.device_profiles import (
    DeviceProfile,
    Limits,
    ProfileChange,
    refuse,
)
from cyborg_lite.model.profiles.groups import parse_groups
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
        refuse('it', 'must be an object')
    groups, alternatives = parse_groups(body.get('groups'), limits)
    return DeviceProfile(
        uuid=_uuid(body.get('uuid'), fresh_uuid),
        name=_name(body.get('name'), limits.name),
        description=_description(body.get('description'), limits.description),
        groups=groups,
        created_at=moment,
        alternatives=alternatives,
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
            values[field], alternatives = parse_groups(value, limits)
            # A client that cannot read alternatives must not delete them.
            if limits.attributes is not None:
                values[KEY] = alternatives
        elif field in _FLAGS:
            if not isinstance(value, bool):
                refuse(field, 'must be true or false')
            values[field] = value
        else:
            refuse(format_value(field), 'cannot be changed')
    return ProfileChange(fields=tuple(values), **values)


def _uuid(value: object, fresh: str) -> str:
    if value is None:
        return fresh
    uuid = uuids.normalize_uuid(value) if isinstance(value, str) else None
    if uuid is None:
        refuse('uuid', 'must be a UUID')
    return uuid


def _name(value: object, longest: int) -> str:
    if not isinstance(value, str) or not is_valid_name(value) or len(value) > longest:
        allowed = 'letters, digits, hyphens and underscores'
        refuse('name', f'must be a string of 1 to {longest} {allowed}')
    return value


def _description(value: object, longest: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest or not is_storable(value):
        fault = f'must be null or a string of at most {longest} characters, without NUL'
        refuse('description', fault)
    return value
