# SPDX-License-Identifier: Apache-2.0
"""Parsing of device profiles and of patches of a device profile.

[{"op": "replace", "path": "/description", "value": ...}, ...]
"""

import dataclasses
import functools
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import os_traits

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.exceptions import InvalidDeviceProfile, InvalidInput
from cyborg_lite.model import profile_grammar
from cyborg_lite.model.device_profiles import DeviceProfile, Limits, ProfileChange
from cyborg_lite.model.text import format_value

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
    profile = profile_grammar.parse_profile(
        fields, limits, fresh_uuid=fresh, moment=moment
    )
    switches: dict[str, object] = {
        key: fields[key] for key in _SWITCHES if newer and key in fields
    }
    change = profile_grammar.parse_profile_change(switches, limits)
    return dataclasses.replace(
        profile, **{key: getattr(change, key) for key in change.fields}
    )


def parse_profile_change(call: Call, limits: Limits) -> ProfileChange:
    """Return the change that the patch in the body describes.

    The body matches its schema.

    :raises InvalidDeviceProfile: a path is unknown or repeated, or a value is invalid
    """
    return profile_grammar.parse_profile_change(
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
    return dataclasses.replace(limits, standard_traits=_list_standard_traits())


@functools.cache
def _list_standard_traits() -> frozenset[str]:
    return frozenset(os_traits.get_traits())
