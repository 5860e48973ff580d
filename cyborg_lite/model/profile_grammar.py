# SPDX-License-Identifier: Apache-2.0
"""Grammar of device profiles: converts the JSON of a client or raises an error.

The grammar of the keys in a group is in ``group_keys.py``.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model import group_keys, profile_sets, selector_keys, uuids
from cyborg_lite.model.alternatives import KEY, check_alternatives
from cyborg_lite.model.device_profiles import (
    DeviceProfile,
    Group,
    Limits,
    ProfileChange,
)
from cyborg_lite.model.text import format_value, is_storable

_NAME: Final = re.compile(r'[A-Za-z0-9_-]+')
_FLAGS: Final = ('enabled', 'is_public')
_Groups = tuple[dict[str, str], ...]


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
    groups, alternatives = _groups(body.get('groups'), limits)
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
            values[field], alternatives = _groups(value, limits)
            # A client that cannot read alternatives must not delete them.
            if limits.alternatives > 1:
                values[KEY] = alternatives
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


def _groups(value: object, limits: Limits) -> tuple[_Groups, tuple[_Groups, ...]]:
    """Return the groups, and for each group its alternatives; empty: none for any."""
    if not isinstance(value, list) or not 1 <= len(value) <= limits.groups:
        raise InvalidDeviceProfile(
            reason=f'groups must be a list of 1 to {limits.groups} objects'
        )
    options = [
        _options(f'groups[{index}]', group, limits) for index, group in enumerate(value)
    ]
    total = sum(max(map(_count_units, groups)) for groups in options)
    if total > limits.accelerators:
        raise InvalidDeviceProfile(
            reason=f'groups ask for {total} accelerators, '
            f'at most {limits.accelerators} are allowed'
        )
    groups = tuple(first for first, *_ in options)
    further = tuple(tuple(alternatives) for _, *alternatives in options)
    if limits.sets and any(further):
        _check_no_sets(options)
    elif limits.sets:
        groups = profile_sets.merge_sets(groups)
        further = ((),) * len(groups)
    check_alternatives(groups, further, limits)
    return groups, further if any(further) else ()


def _check_no_sets(options: Sequence[_Groups]) -> None:
    """Check that no group of a profile with alternatives is in a set.

    A set becomes one group; its alternatives would be those of several groups.
    """
    if any(selector_keys.SAME in group for groups in options for group in groups):
        reason = f'a profile cannot have both {selector_keys.SAME} and {KEY}'
        raise InvalidDeviceProfile(reason=reason)


def _count_units(group: Mapping[str, str]) -> int:
    return Group.parse(group).requirements.total


def _options(name: str, value: object, limits: Limits) -> _Groups:
    """Return a group and its alternatives."""
    if limits.alternatives <= 1 or not isinstance(value, Mapping) or KEY not in value:
        return (_group(name, value, limits),)
    values = value[KEY]
    limit = limits.alternatives - 1
    if not isinstance(values, list) or len(values) > limit:
        raise InvalidDeviceProfile(
            reason=f'{name}.{KEY} must be a list of at most {limit} objects'
        )
    keys = {key: item for key, item in value.items() if key != KEY}
    titles = ((f'{name}.{KEY}[{index}]', group) for index, group in enumerate(values))
    return (
        _group(name, keys, limits),
        *(_group(title, group, limits) for title, group in titles),
    )


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
    if limits.attributes is not None:
        return selector_keys.compile_group(
            group_name, group, limits.attributes, sets=limits.sets
        )
    return group
