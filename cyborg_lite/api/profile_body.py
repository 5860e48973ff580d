# SPDX-License-Identifier: Apache-2.0
"""Device profiles as clients send them: whole, or as a patch of one.

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
from cyborg_lite.model.text import shown

_SWITCHES: Final = ('enabled', 'is_public')


def created(call: Call, limits: Limits) -> list[DeviceProfile]:
    """Those of the body, which fits its schema.

    :raises InvalidInput: there are more than the microversion knows, or one is wrong
    """
    newer = call.microversion >= V2_4
    if not newer and len(call.body) > 1:
        raise InvalidInput(reason='The request body must have at most 1 elements.')
    return [_created(one, _limits(call, limits), newer) for one in call.body]


def _created(wanted: dict[str, Any], limits: Limits, newer: bool) -> DeviceProfile:
    moment = datetime.now(UTC)
    fresh = str(uuid4())
    made = profile_grammar.parse(wanted, limits, fresh_uuid=fresh, moment=moment)
    switches: dict[str, object] = {
        key: wanted[key] for key in _SWITCHES if newer and key in wanted
    }
    change = profile_grammar.parse_change(switches, limits)
    return dataclasses.replace(
        made, **{key: getattr(change, key) for key in change.fields}
    )


def changed(call: Call, limits: Limits) -> ProfileChange:
    """What the patch in the body, which fits its schema, asks for.

    :raises InvalidDeviceProfile: a path is unknown or there twice, or a value wrong
    """
    return profile_grammar.parse_change(_values(call.body), _limits(call, limits))


def _values(patch: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in patch:
        path = one['path']
        field = path.removeprefix('/')
        if field == path or not field:
            raise InvalidDeviceProfile(reason=f'there is no path {shown(path)}')
        if field in values:
            raise InvalidDeviceProfile(reason=f'/{shown(field)} is there twice')
        values[field] = one['value']
    return values


def _limits(call: Call, limits: Limits) -> Limits:
    if call.microversion < V2_4:
        return limits
    return dataclasses.replace(limits, standard_traits=_standard_traits())


@functools.cache
def _standard_traits() -> frozenset[str]:
    return frozenset(os_traits.get_traits())
