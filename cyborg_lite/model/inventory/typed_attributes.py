# SPDX-License-Identifier: Apache-2.0
"""Typed attributes of deployables: their names, types and units.

A driver declares the attributes that it reports. Selectors of device profiles compare
them. A value is stored as text in canonical form, together with its type and its unit,
so that the conductor needs no driver to read it.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

NAME: Final = re.compile(r'[a-z][a-z0-9_]{0,63}')
"""Pattern of the name of an attribute."""
MAX_VALUE: Final = 255  # characters
MAX_UNIT: Final = 16  # characters

_INTEGER: Final = re.compile(r'0|-?[1-9][0-9]{0,17}')
_VERSION: Final = re.compile(r'[0-9]{1,9}(\.[0-9]{1,9}){0,7}')
_BOOLEANS: Final[Mapping[str, bool]] = {'true': True, 'false': False}


class AttributeType(enum.StrEnum):
    """Types of attributes."""

    INTEGER = 'integer'
    """A whole number of 64 bits, usually with a unit."""
    STRING = 'string'
    VERSION = 'version'
    """One to eight numbers with dots, such as 550.54.15."""
    BOOLEAN = 'boolean'


Value: TypeAlias = int | str | bool | tuple[int, ...]
"""A value in the form that is compared; a version is a tuple of its numbers."""


@dataclass(frozen=True, slots=True)
class TypedAttribute:
    """The value of an attribute of a deployable."""

    name: str
    type: AttributeType
    value: str  # in canonical form
    unit: str = ''

    def parse(self) -> Value | None:
        """Return the value, or None if the text is no value of the type."""
        return parse_value(self.type, self.value)


@dataclass(frozen=True, slots=True)
class AttributeDeclaration:
    """The name, the type and the unit of an attribute."""

    name: str
    type: AttributeType
    unit: str = ''  # of an integer; empty: it is a plain number
    description: str = ''

    def of(self, value: int | str) -> TypedAttribute:
        """Return the attribute with a value.

        :param value: in the unit of the declaration; True and False for a boolean
        :raises ValueError: the value is not of the type
        """
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if len(text) > MAX_VALUE or parse_value(self.type, text) is None:
            raise ValueError(f'{self.name} cannot have the value {text!r}')
        return TypedAttribute(self.name, self.type, text, self.unit)

    def covers(self, attribute: 'TypedAttribute | AttributeDeclaration') -> bool:
        """Check whether name, type and unit are those of the declaration."""
        own = self.name, self.type, self.unit
        return own == (attribute.name, attribute.type, attribute.unit)

    def __str__(self) -> str:
        unit = f' in {self.unit}' if self.unit else ''
        return f'{self.name} ({self.type}{unit})'


def parse_value(kind: AttributeType, text: str) -> Value | None:
    """Return the value of a text, or None if the text is no value of the type."""
    if kind is AttributeType.STRING:
        return text
    if kind is AttributeType.INTEGER:
        return int(text) if _INTEGER.fullmatch(text) else None
    if kind is AttributeType.BOOLEAN:
        return _BOOLEANS.get(text)
    return parse_version(text)


def parse_version(text: str) -> tuple[int, ...] | None:
    """Return the numbers of a version without zeros at the end; None: no version.

    Versions that differ in such zeros only are equal.
    """
    if not _VERSION.fullmatch(text):
        return None
    numbers = [int(number) for number in text.split('.')]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


# --- declarations that several drivers share ---


def _text(name: str, description: str) -> AttributeDeclaration:
    return AttributeDeclaration(name, AttributeType.STRING, '', description)


def _integer(name: str, description: str, unit: str = '') -> AttributeDeclaration:
    return AttributeDeclaration(name, AttributeType.INTEGER, unit, description)


def _boolean(name: str, description: str) -> AttributeDeclaration:
    return AttributeDeclaration(name, AttributeType.BOOLEAN, '', description)


ARCHITECTURE: Final = _text(
    'architecture', 'Architecture of the chip in lower case, such as ``hopper``.'
)
MEMORY: Final = _integer(
    'memory_mib', 'Memory that one unit of the deployable has.', 'MiB'
)
NUMA_NODE: Final = _integer(
    'numa_node', 'NUMA node of the host that the device is attached to.'
)
LINK_SPEED: Final = _integer(
    'link_speed', 'Highest transfer rate of one PCI Express lane of the device.', 'MT/s'
)
DRIVER_VERSION: Final = AttributeDeclaration(
    'driver_version',
    AttributeType.VERSION,
    description='Version of the kernel driver of the host that serves the units.',
)
FIRMWARE: Final = _text('firmware', 'Revision of the firmware as the device names it.')
MAX_POWER: Final = _integer('max_power_w', 'Highest power of the device.', 'W')
MIG_PROFILE: Final = _text(
    'mig_profile', 'MIG profile of the units, such as ``1g.5gb``.'
)
VGPU_TYPE: Final = _text('vgpu_type', 'Name of the vGPU type of the units.')
SAME_CARD: Final = _boolean(
    'same_card', '``true`` if all units are functions of one card.'
)
SAME_FABRIC: Final = _boolean(
    'same_fabric', '``true`` if a fabric of the host connects the units.'
)
SAME_NUMA_NODE: Final = _boolean(
    'same_numa_node', '``true`` if all units are on one NUMA node.'
)

SHARED: Final = (
    ARCHITECTURE,
    DRIVER_VERSION,
    FIRMWARE,
    LINK_SPEED,
    MAX_POWER,
    MEMORY,
    MIG_PROFILE,
    NUMA_NODE,
    SAME_CARD,
    SAME_FABRIC,
    SAME_NUMA_NODE,
    VGPU_TYPE,
)
"""Declarations whose names no driver may use with another type or unit."""

MODEL: Final = _text('model', 'Model of the device.')
VENDOR: Final = _text(
    'vendor', 'Vendor of the device, for a PCI device the id in hexadecimal digits.'
)
DEVICE_TYPE: Final = _text('type', 'Type of the device, such as ``GPU``.')

OF_EVERY_DEVICE: Final = (DEVICE_TYPE, MODEL, VENDOR)
"""Attributes that the conductor knows of every device; no driver reports them."""

OF_ONE_CARD: Final = (SAME_CARD.of(True), SAME_NUMA_NODE.of(True))
"""Attributes of a deployable whose units are not groups of PCI functions."""


def find_declaration_fault(declaration: AttributeDeclaration) -> str | None:
    """Return what is wrong with a declaration of a driver, or None."""
    if not NAME.fullmatch(declaration.name):
        return f'{declaration.name} is not a valid name of an attribute'
    if declaration.unit and declaration.type is not AttributeType.INTEGER:
        return f'{declaration.name} has a unit, but is no integer'
    if len(declaration.unit) > MAX_UNIT:
        return f'the unit of {declaration.name} is too long'
    for reserved in (*SHARED, *OF_EVERY_DEVICE):
        if declaration.name == reserved.name and not reserved.covers(declaration):
            return f'{declaration.name} must be declared as {reserved}'
    if any(declaration.name == reserved.name for reserved in OF_EVERY_DEVICE):
        return f'{declaration.name} is reported for every device'
    return None


def find_fault(attribute: TypedAttribute) -> str | None:
    """Return what is wrong with a reported attribute, or None."""
    declaration = AttributeDeclaration(attribute.name, attribute.type, attribute.unit)
    fault = find_declaration_fault(declaration)
    if fault is None and (
        len(attribute.value) > MAX_VALUE or attribute.parse() is None
    ):
        return f'{attribute.name} has a value that is no {attribute.type}'
    return fault


# --- units of integers in selectors, and their conversion ---
#
# Prefixes follow IEC 80000-13: ``MiB`` is 2**20 bytes, ``MB`` is 10**6 bytes.


_DIMENSIONS: Final[tuple[Mapping[str, int], ...]] = (
    {
        'B': 1,
        'kB': 10**3,
        'MB': 10**6,
        'GB': 10**9,
        'TB': 10**12,
        'KiB': 2**10,
        'MiB': 2**20,
        'GiB': 2**30,
        'TiB': 2**40,
    },
    {'Hz': 1, 'kHz': 10**3, 'MHz': 10**6, 'GHz': 10**9},
    {'mW': 1, 'W': 10**3, 'kW': 10**6},
    {'T/s': 1, 'kT/s': 10**3, 'MT/s': 10**6, 'GT/s': 10**9},
    {'bit/s': 1, 'kbit/s': 10**3, 'Mbit/s': 10**6, 'Gbit/s': 10**9},
)


def list_units(unit: str) -> tuple[str, ...]:
    """Return the units that can be converted to a unit, the unit itself included."""
    for dimension in _DIMENSIONS:
        if unit in dimension:
            return tuple(dimension)
    return (unit,) if unit else ()


def convert_unit(source: str, target: str) -> tuple[int, int] | None:
    """Return factors by which numbers in two units become comparable.

    :returns: the factor for a number in ``source``, and the one for a number in
        ``target``; None: the units measure different things
    """
    if source == target:
        return 1, 1
    for dimension in _DIMENSIONS:
        if source in dimension and target in dimension:
            return dimension[source], dimension[target]
    return None
