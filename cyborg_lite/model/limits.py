# SPDX-License-Identifier: Apache-2.0
"""Limits of what is stored, and the check of the values that agents send.

Agents run on hosts with instances, and drivers may be third-party code. A message must
not fail within a transaction.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.text import format_value, is_storable

REASON_MAX_LENGTH: Final = 255
"""Characters of a stored reason; longer reasons are cut."""

_MAX_TEXT: Final = 255  # characters
_MAX_ITEMS: Final = 256
_MAX_NUMBER: Final = 2**31 - 1
_MAX_LONG: Final = 2**62
# The column has 31 bits, and later claims add to it.
_MAX_GENERATION: Final = 2**30
# Characters of the keys and values of mappings.
_MAX_OF_MAPPINGS: Final[Mapping[str, int]] = {'key': 128, 'value': 4096}

# By class and field: characters, items or the largest number, where it is another one.
LIMITS: Final[Mapping[str, int]] = {
    'HostReport.boot_id': 64,
    'HostReport.identity': 36,
    'HostReport.agent_digest': 64,
    'HostReport.devices': 1024,
    'HostReport.number': _MAX_LONG,
    'Device.type': 32,
    'Device.driver': 64,
    'Device.control_address': 64,
    'Device.hardware_id': 128,
    'Device.vendor_board_info': 16000,
    'Device.health_reason': 4096,
    'Deployable.name': 240,  # leaves room for a suffix that makes a name unique
    'Deployable.handles': 16384,
    'Deployable.children': 16384,
    'Deployable.typed_attributes': 64,
    'AttachHandle.key': 128,
    'HeartbeatDetails.boot_id': 64,
    'HeartbeatDetails.identity': 36,
    'HeartbeatDetails.machine': 64,
    'HeartbeatDetails.telemetry': 1024,
    'HeartbeatDetails.telemetry.key': 64,
    'DatabaseMark.incarnation': _MAX_GENERATION,
    'DatabaseMark.step': _MAX_LONG,
    'DatabaseMark.period': _MAX_LONG,
    'DatabaseMark.arq_uuid': 36,
    'Usage.reason': 4096,  # cut before it is stored
    'Usage.counters': 32,
    'Usage.counters.key': 64,
    'Usage.counters.value': _MAX_LONG,
    'Usage.memory_used': _MAX_LONG,
    'Usage.memory_total': _MAX_LONG,
    'RecoveryResult.boot_id': 64,
    'RecoveryResult.rebuilt': 16384,
    'RecoveryResult.rebuilt.item': 64,
    'RecoveryResult.lost': 16384,
    'RecoveryResult.lost.key': 64,
    'RecoveryResult.connecting': 16384,
    'RecoveryResult.connecting.item': 64,
    'HostHandles.handles': 16384,
    'HostHandle.uuid': 64,
    'HostHandle.arq_uuid': 64,
    'HostHandle.instance_uuid': 64,
    'HostHandle.generation': _MAX_GENERATION,
    'HostEvents.events': 1000,
    'HostEvent.number': _MAX_LONG,
    'HostEvent.address': 64,
    'HostEvent.arq_uuid': 64,
    'CleanProgress.session': 64,
    'CleanProgress.reason': 4096,
    'CleanProgress.steps': 64,
    'CleanProgress.results': 64,
    'CleanStep.name': 40,
    'CleanStepResult.name': 40,
    'CleanStepResult.error': 4096,
}


# Any: as below.
def check_message(host: str, value: Any, field: str = '') -> None:
    """Check that the message of an agent can be stored.

    :param field: as in ``check_values``
    :raises InvalidInput: a value is invalid, or the name of the host is
    """
    check_values(host, 'Host.name')
    if not host:
        raise InvalidInput(reason='The message has no hostname.')
    check_values(value, field)


# Any: an object of a data class, or a value of one of its fields.
def check_values(value: Any, field: str = '') -> None:
    """Check that all texts, numbers and collections in a value can be stored.

    :param field: class and field of the value; empty: an object of a data class
    :raises InvalidInput: one cannot be stored
    """
    if isinstance(value, str):
        _check_text(value, field)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_number(value, field)
    elif isinstance(value, Mapping):
        _check_count(len(value), field)
        for key, item in value.items():
            check_values(key, f'{field}.key')
            check_values(item, f'{field}.value')
    elif isinstance(value, tuple | list):
        _check_count(len(value), field)
        for item in value:
            check_values(item, f'{field}.item')
    else:
        kind: Any = type(value)
        for name, path in _list_fields(kind):
            check_values(getattr(value, name), path)


@cache
def _list_fields(kind: type[Any]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a data class, with their names in ``LIMITS``.

    Other objects, which are None, truth values and times, have none.
    """
    if not is_dataclass(kind):
        return ()
    return tuple((item.name, f'{kind.__name__}.{item.name}') for item in fields(kind))


def _name(field: str) -> str:
    return field.split('.')[1]


def _check_text(text: str, field: str) -> None:
    default = _MAX_OF_MAPPINGS.get(field.rpartition('.')[2], _MAX_TEXT)
    limit = LIMITS.get(field, default)
    if len(text) > limit or not is_storable(text):
        reason = (
            f'{_name(field)} {format_value(text)} has more than {limit} characters, or '
            f'characters that cannot be stored.'
        )
        raise InvalidInput(reason=reason)


def _check_number(number: float, field: str) -> None:
    limit = LIMITS.get(field, _MAX_NUMBER)
    lowest = -limit if isinstance(number, float) else 0
    # This also rejects NaN and infinity, which JSON does not have.
    if not lowest <= number <= limit:
        raise InvalidInput(reason=f'{_name(field)} cannot be {number}.')


def _check_count(number: int, field: str) -> None:
    limit = LIMITS.get(field, _MAX_ITEMS)
    if number > limit:
        label = _name(field).replace('_', ' ')
        raise InvalidInput(reason=f'The message has more than {limit} {label}.')
