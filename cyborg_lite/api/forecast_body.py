# SPDX-License-Identifier: Apache-2.0
"""Parsing of changes of hardware that are not made.

{"changes": [{"device": ..., "mode": ...}, {"hostname": ..., "resources": {...}}]}
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cyborg_lite.api import arguments, profile_body, profile_search
from cyborg_lite.api.call import Call
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.device_profiles import DeviceProfile, Limits
from cyborg_lite.model.forecasts import ForecastRequest, HardwareChange, NewDevice
from cyborg_lite.model.inventory import HandleType
from cyborg_lite.model.providers import valid_symbol
from cyborg_lite.model.text import format_value, is_storable
from cyborg_lite.model.typed_attributes import AttributeDeclaration, TypedAttribute
from cyborg_lite.rpc.conductor import ConductorAPI

_CLASS: Final = re.compile(r'[A-Za-z0-9_-]{1,255}')
_PRESENT: Final = ('mode', 'remove')  # keys of a change of a present device
_NEW: Final = (
    'hostname',
    'resources',
    'traits',
    'attributes',
    'attach_handle_type',
    'count',
)
_NUMBERS: Final = ('integer', 'boolean')  # types whose values are int in Python
_MAX_PROVIDERS: Final = 1000  # of all new devices

Declarations = Sequence[AttributeDeclaration]


def parse_request(
    call: Call, limits: Limits, conductor: ConductorAPI
) -> ForecastRequest:
    """Return the request of the body, which matches its schema.

    :raises InvalidInput: a change or a group is invalid
    :raises DeviceProfileNotFound: no profile that the caller may see has a name
    """
    body = call.body
    declarations: Declarations = ()
    if any('attributes' in change for change in body['changes']):
        declarations = conductor.list_attribute_declarations(call.caller)
    changes = tuple(
        _parse_change(f'changes[{index}]', change, declarations)
        for index, change in enumerate(body['changes'])
    )
    _check_together(changes)
    profiles = None
    if 'profiles' in body:
        uuids = (
            profile_search.find_profile(conductor, call, name).uuid
            for name in dict.fromkeys(body['profiles'])
        )
        profiles = tuple(dict.fromkeys(uuids))
    return ForecastRequest(
        changes, profiles, _parse_new_profile(call, limits, conductor)
    )


def _parse_new_profile(
    call: Call, limits: Limits, conductor: ConductorAPI
) -> DeviceProfile | None:
    if 'groups' not in call.body:
        return None
    limits = profile_body.add_declarations(call, limits, conductor, [call.body])
    return profile_body.parse_groups(call, limits, call.body['groups'])


def _parse_change(
    title: str, change: Mapping[str, Any], declarations: Declarations
) -> HardwareChange:
    allowed = ('device', *_PRESENT) if 'device' in change else _NEW
    unknown = [key for key in change if key not in allowed]
    if unknown:
        words = 'not allowed' if 'device' in change else 'allowed only'
        reason = f'{title}: {unknown[0]} is {words} together with device.'
        raise InvalidInput(reason=reason)
    if 'device' not in change:
        return HardwareChange(device=_parse_device(title, change, declarations))
    uuid = arguments.parse_uuid(f'{title}.device', change['device'])
    if len(change) != 2:
        reason = f'{title} must have either mode or remove for the device.'
        raise InvalidInput(reason=reason)
    return HardwareChange(uuid, change.get('mode', ''))


def _parse_device(
    title: str, change: Mapping[str, Any], declarations: Declarations
) -> NewDevice:
    missing = [key for key in ('hostname', 'resources') if key not in change]
    if missing:
        reason = f'{title} lacks {missing[0]}, or a device.'
        raise InvalidInput(reason=reason)
    hostname = change['hostname']
    if not is_storable(hostname):
        raise InvalidInput(reason=f'{title}.hostname is not valid text.')
    amounts: dict[str, int] = {}
    for name, amount in change['resources'].items():
        if not _CLASS.fullmatch(name):
            reason = f'{title}: {format_value(name)} is no resource class.'
            raise InvalidInput(reason=reason)
        amounts[valid_symbol(name)] = amount
    return NewDevice(
        hostname=hostname,
        amounts=amounts,
        traits=tuple(dict.fromkeys(change.get('traits', ()))),
        attributes=tuple(
            _parse_attribute(title, name, value, declarations)
            for name, value in change.get('attributes', {}).items()
        ),
        handle_type=HandleType(change.get('attach_handle_type', 'PCI')),
        count=change.get('count', 1),
    )


def _parse_attribute(
    title: str, name: str, value: int | str, declarations: Declarations
) -> TypedAttribute:
    """Return the attribute with a value.

    :raises InvalidInput: the attribute is not declared, or the value does not fit
    """
    matches = [item for item in declarations if item.name == name]
    for declaration in matches:
        fits = isinstance(value, bool) == (declaration.type == 'boolean')
        if fits and isinstance(value, int) == (declaration.type in _NUMBERS):
            try:
                return declaration.of(value)
            except ValueError:
                continue
    if matches:
        types = ' or '.join(f'{item.type}' for item in matches)
        reason = f'{title}: {name} must be of type {types}, not {format_value(value)}.'
    else:
        names = ', '.join(sorted({item.name for item in declarations}))
        reason = f'{title}: {format_value(name)} is no attribute. Known: {names}.'
    raise InvalidInput(reason=reason)


def _check_together(changes: Sequence[HardwareChange]) -> None:
    uuids = [change.device_uuid for change in changes if change.device_uuid]
    repeated = next((uuid for uuid in uuids if uuids.count(uuid) > 1), None)
    if repeated is not None:
        reason = f'changes name the device {repeated} more than once.'
        raise InvalidInput(reason=reason)
    number = sum(_count_providers(changes))
    if number > _MAX_PROVIDERS:
        reason = (
            f'The new devices have {number} resource providers together, at most '
            f'{_MAX_PROVIDERS} are allowed.'
        )
        raise InvalidInput(reason=reason)


def _count_providers(changes: Sequence[HardwareChange]) -> Iterator[int]:
    for change in changes:
        if change.device is not None:
            yield len(change.device.amounts) * change.device.count
