# SPDX-License-Identifier: Apache-2.0
"""Validation of host reports: only the agent's host, within limits, no duplicates.

Agents run on hosts with instances, and drivers may be third-party code. A report must
not affect another host or fail within a transaction.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Final

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    HostReport,
)
from cyborg_lite.model.text import format_value, is_storable

_MAX_DEVICES: Final = 1024
_MAX_HANDLES: Final = 16384
_MAX_ITEMS: Final = 256  # of a mapping or a list of traits
_MAX_NUMBER: Final = 2**31 - 1
_MAX_REPORT_NUMBER: Final = 2**62

# Maximum lengths of the columns; JSON columns are limited as well.
_DEVICE_TEXTS: Final = {field.name: 255 for field in fields(Device)} | {
    'type': 32,
    'driver': 64,
    'control_address': 64,
    'hardware_id': 128,
    'vendor_board_info': 16000,
    'health_reason': 4096,
}
_MAX_NAME: Final = 240  # leaves room for a suffix that makes a name unique
_MAX_SYMBOL: Final = 255
_MAX_KEY: Final = 128
_MAX_VALUE: Final = 4096


def check_report(report: HostReport) -> None:
    """Check that a report can be stored and concerns its own host only.

    :raises InvalidInput: a value is invalid
    """
    _check_text('hostname', report.hostname, 255)
    _check_text('boot_id', report.boot_id, 64)
    _check_text('identity', report.identity, 36)
    _check_text('digest', report.digest, 64)
    if not 0 <= report.number <= _MAX_REPORT_NUMBER:
        raise InvalidInput(reason='The number of the report cannot be stored.')
    if not report.hostname:
        raise InvalidInput(reason='The report has no hostname.')
    _check_count(_MAX_DEVICES, 'devices', report.devices)
    _check_unique('address', (device.control_address for device in report.devices))
    deployables = [item for device in report.devices for item in device.root.walk()]
    _check_count(_MAX_HANDLES, 'deployables', deployables)
    handles = [handle for item in deployables for handle in item.handles]
    _check_count(_MAX_HANDLES, 'attach handles', handles)
    for device in report.devices:
        _check_device(device)
    _check_names(report.hostname, [deployable.name for deployable in deployables])
    for deployable in deployables:
        _check_deployable(deployable)


def _check_device(device: Device) -> None:
    for name, max_length in _DEVICE_TEXTS.items():
        if isinstance(text := getattr(device, name), str):
            _check_text(name, text, max_length)
    if not device.control_address:
        raise InvalidInput(reason='A device has no address.')
    _check_mapping('std_board_info', device.std_board_info)


def _check_names(hostname: str, names: list[str]) -> None:
    _check_unique('deployable', names)
    for name in names:
        _check_text('name', name, _MAX_NAME)
        # Names are unique in the cloud. The prefix prevents a clash with other hosts.
        if not name.startswith(f'{hostname}_'):
            reason = (
                f'The name of deployable {format_value(name)} does not start with '
                f'{format_value(hostname)}_.'
            )
            raise InvalidInput(reason=reason)


def _check_deployable(deployable: Deployable) -> None:
    _check_text('resource_class', deployable.resource_class or '', _MAX_SYMBOL)
    _check_count(_MAX_ITEMS, 'traits', deployable.traits)
    for trait in deployable.traits:
        _check_text('trait', trait, _MAX_SYMBOL)
    for number in (deployable.total, deployable.reserved):
        if not 0 <= number <= _MAX_NUMBER:
            raise InvalidInput(reason=f'{deployable.name} cannot have {number} units.')
    _check_mapping('attributes', deployable.attributes)
    _check_typed_attributes(deployable)
    keys = (handle.key for handle in deployable.handles)
    _check_unique(f'attach handle of {deployable.name}', keys)
    for handle in deployable.handles:
        _check_handle(handle)


def _check_typed_attributes(deployable: Deployable) -> None:
    attributes = deployable.typed_attributes
    _check_count(typed_attributes.MAX_ATTRIBUTES, 'typed attributes', attributes)
    label = f'typed attribute of {deployable.name}'
    _check_unique(label, (attribute.name for attribute in attributes))
    for attribute in attributes:
        _check_text('value', attribute.value, typed_attributes.MAX_VALUE)
        fault = typed_attributes.find_fault(attribute)
        if fault is not None:
            reason = f'{deployable.name} has an invalid typed attribute: {fault}.'
            raise InvalidInput(reason=reason)


def _check_handle(handle: AttachHandle) -> None:
    _check_text('key', handle.key, _MAX_KEY)
    _check_mapping('info', handle.info)


def _check_text(field: str, value: str, max_length: int) -> None:
    if len(value) > max_length or not is_storable(value):
        reason = (
            f'{field} {format_value(value)} has more than {max_length} characters, or '
            f'characters that cannot be stored.'
        )
        raise InvalidInput(reason=reason)


def _check_mapping(field: str, values: Mapping[str, str]) -> None:
    _check_count(_MAX_ITEMS, field, values)
    for key, value in values.items():
        _check_text(field, key, _MAX_KEY)
        _check_text(field, value, _MAX_VALUE)


def _check_count(limit: int, label: str, items: Iterable[object]) -> None:
    if sum(1 for _ in items) > limit:
        raise InvalidInput(reason=f'The report has more than {limit} {label}.')


def _check_unique(label: str, values: Iterable[str]) -> None:
    for value in _find_duplicates(values):
        raise InvalidInput(
            reason=f'The report has {label} {format_value(value)} twice.'
        )


def _find_duplicates(values: Iterable[str]) -> Iterator[str]:
    previous: set[str] = set()
    for value in values:
        if value in previous:
            yield value
        previous.add(value)
