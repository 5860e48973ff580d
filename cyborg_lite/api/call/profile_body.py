# SPDX-License-Identifier: Apache-2.0
"""Parsing of device profiles and of patches of a device profile.

[{"op": "replace", "path": "/description", "value": ...}, ...]
"""

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import os_traits

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_4, V2_6
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.inventory.typed_attributes import AttributeDeclaration
from cyborg_lite.model.profiles import grammar, group_keys
from cyborg_lite.model.profiles.alternatives import KEY
from cyborg_lite.model.profiles.device_profiles import (
    DeviceProfile,
    Limits,
    ProfileChange,
)
from cyborg_lite.model.profiles.selector_keys import SAME, SELECTING_KEYS
from cyborg_lite.model.text import format_value
from cyborg_lite.rpc.interface import Conductor

_SWITCHES: Final = ('enabled', 'is_public')


def parse_profiles(call: Call, limits: Limits) -> list[DeviceProfile]:
    """Return the profiles of the body, which matches its schema.

    :raises InvalidInput: a profile is invalid, or the microversion allows only one
    """
    newer = call.microversion >= V2_4
    if not newer and len(call.body) > 1:
        raise InvalidInput(reason='The request body must have at most 1 element.')
    return [
        _parse_profile(fields, _select_limits(call, limits), newer)
        for fields in call.body
    ]


def _parse_profile(
    fields: dict[str, Any], limits: Limits, newer: bool
) -> DeviceProfile:
    moment = datetime.now(UTC)
    fresh = str(uuid4())
    profile = grammar.parse_profile(fields, limits, fresh_uuid=fresh, moment=moment)
    switches: dict[str, object] = {
        key: fields[key] for key in _SWITCHES if newer and key in fields
    }
    change = grammar.parse_profile_change(switches, limits)
    return dataclasses.replace(
        profile, **{key: getattr(change, key) for key in change.fields}
    )


def parse_profile_change(call: Call, limits: Limits) -> ProfileChange:
    """Return the change that the patch in the body describes.

    The body matches its schema.

    :raises InvalidDeviceProfile: a path is unknown or repeated, or a value is invalid
    """
    return grammar.parse_profile_change(
        _parse_operations(call.body), _select_limits(call, limits)
    )


def _parse_operations(patch: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for operation in patch:
        path = operation['path']
        field = path.removeprefix('/')
        if field == path or not field:
            raise InvalidDeviceProfile(
                reason=f'the path {format_value(path)} does not exist'
            )
        if field in values:
            raise InvalidDeviceProfile(reason=f'/{format_value(field)} is repeated')
        values[field] = operation['value']
    return values


def _select_limits(call: Call, limits: Limits) -> Limits:
    if call.microversion < V2_4:
        return limits
    limits = dataclasses.replace(limits, standard_traits=_list_standard_traits())
    if call.microversion < V2_6:
        return limits
    names = _list_accel_names() | call.extra_accel_keys
    return dataclasses.replace(limits, accel_keys=names)


def add_declarations(call: Call, limits: Limits, conductor: Conductor) -> Limits:
    """Return the limits with the attributes that selectors in the body may use.

    Before 2.6 selectors are not compiled. The conductor is asked only if a group has a
    selector or a quantity.
    """
    if call.microversion < V2_6:
        return limits
    declarations: tuple[AttributeDeclaration, ...] = ()
    if any(not SELECTING_KEYS.isdisjoint(group) for group in _list_groups(call.body)):
        declarations = conductor.list_attribute_declarations(call.caller)
    return dataclasses.replace(limits, attributes=declarations)


def _list_groups(body: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the groups of new profiles, or those of a patch, with alternatives."""
    for item in body:
        for field in ('groups', 'value'):
            for group in _select_objects(item.get(field)):
                yield group
                yield from _select_objects(group.get(KEY))


def _select_objects(value: object) -> list[dict[str, Any]]:
    """Return the elements that are objects; the grammar refuses any others."""
    elements = value if isinstance(value, list) else []
    return [element for element in elements if isinstance(element, dict)]


@functools.cache
def _list_accel_names() -> frozenset[str]:
    selecting = (key.removeprefix('accel:') for key in (SAME, *SELECTING_KEYS))
    return group_keys.list_accel_names().union(selecting)


@functools.cache
def _list_standard_traits() -> frozenset[str]:
    return frozenset(os_traits.get_traits())
