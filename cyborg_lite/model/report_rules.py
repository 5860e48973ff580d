# SPDX-License-Identifier: Apache-2.0
"""What a conductor takes from an agent: for its own host, in bounds, without doubles.

An agent runs where guests run, and drivers may live out of tree: nothing that they
send may hurt another host or fail in the middle of a transaction.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.inventory import Deployable, Device, HostReport, Unit
from cyborg_lite.model.text import is_storable, shown

_MOST_DEVICES: Final = 1024
_MOST_UNITS: Final = 16384
_MOST_ITEMS: Final = 256  # in a mapping, or in a list of traits
_LARGEST_NUMBER: Final = 2**31 - 1

# As the columns are; what has none is bounded all the same.
_DEVICE_TEXTS: Final = {
    'type': 32,
    'vendor': 255,
    'model': 255,
    'driver': 64,
    'address': 64,
    'hardware_id': 128,
    'health_reason': 4096,
}
_LONGEST_NAME: Final = 240  # with room to tell it from another one
_LONGEST_SYMBOL: Final = 255
_LONGEST_KEY: Final = 128
_LONGEST_VALUE: Final = 4096
_LONGEST_BOARD_INFO: Final = 16000


def check(report: HostReport) -> None:
    """:raises InvalidInput: the report cannot be stored, or is not about its host"""
    _text('hostname', report.hostname, 255)
    _text('boot_id', report.boot_id, 64)
    if not report.hostname:
        raise InvalidInput(reason='The report names no host.')
    _at_most(_MOST_DEVICES, 'devices', report.devices)
    _once('address', (device.address for device in report.devices))
    deployables = [each for device in report.devices for each in device.root.walk()]
    _at_most(_MOST_UNITS, 'deployables', deployables)
    _at_most(_MOST_UNITS, 'units', [u for each in deployables for u in each.units])
    for device in report.devices:
        _check_device(device)
    _check_names(report.hostname, [each.name for each in deployables])
    for deployable in deployables:
        _check_deployable(deployable)


def _check_device(device: Device) -> None:
    for field, longest in _DEVICE_TEXTS.items():
        _text(field, getattr(device, field), longest)
    if not device.address:
        raise InvalidInput(reason='A device has no address.')
    _texts('std_board_info', device.std_board_info)
    _text('vendor_board_info', device.vendor_board_info or '', _LONGEST_BOARD_INFO)


def _check_names(hostname: str, names: list[str]) -> None:
    _once('deployable', names)
    for name in names:
        _text('name', name, _LONGEST_NAME)
        # Names are unique in the cloud: without its host's it may be another host's.
        if not name.startswith(f'{hostname}_'):
            reason = (
                f'Deployable {shown(name)} is not named for host {shown(hostname)}.'
            )
            raise InvalidInput(reason=reason)


def _check_deployable(deployable: Deployable) -> None:
    _text('resource_class', deployable.resource_class or '', _LONGEST_SYMBOL)
    _at_most(_MOST_ITEMS, 'traits', deployable.traits)
    for trait in deployable.traits:
        _text('trait', trait, _LONGEST_SYMBOL)
    for number in (deployable.total, deployable.reserved):
        if not 0 <= number <= _LARGEST_NUMBER:
            raise InvalidInput(reason=f'{deployable.name} cannot have {number} units.')
    _texts('attributes', deployable.attributes)
    _once(f'unit of {deployable.name}', (unit.key for unit in deployable.units))
    for unit in deployable.units:
        _check_unit(unit)


def _check_unit(unit: Unit) -> None:
    _text('key', unit.key, _LONGEST_KEY)
    _texts('info', unit.info)


def _text(field: str, value: str, longest: int) -> None:
    if len(value) > longest or not is_storable(value):
        reason = f'{field} {shown(value)} is too long, or no text that can be kept.'
        raise InvalidInput(reason=reason)


def _texts(field: str, values: Mapping[str, str]) -> None:
    _at_most(_MOST_ITEMS, field, values)
    for key, value in values.items():
        _text(field, key, _LONGEST_KEY)
        _text(field, value, _LONGEST_VALUE)


def _at_most(limit: int, what: str, those: Iterable[object]) -> None:
    if sum(1 for _ in those) > limit:
        raise InvalidInput(reason=f'The report has more than {limit} {what}.')


def _once(what: str, values: Iterable[str]) -> None:
    for value in _repeated(values):
        raise InvalidInput(reason=f'The report has {what} {shown(value)} twice.')


def _repeated(values: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            yield value
        seen.add(value)
