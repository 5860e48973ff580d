# SPDX-License-Identifier: Apache-2.0
"""Handlers of bitstreams: formats and host drivers of a card, and their versions.

The image properties ``type`` and ``driver`` choose the handler. Without them the card
chooses it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Bitstream

_SEPARATORS: Final = re.compile(r'[._+-]')


@dataclass(frozen=True, slots=True)
class Handlers:
    """Formats and host drivers of a card; empty: its agent does not report them."""

    types: tuple[str, ...] = ()
    # Version by name of the driver; empty: not known.
    drivers: Mapping[str, str] = field(default_factory=dict)
    setup_roles: tuple[str, ...] = ()


def parse_handlers(attributes: Mapping[str, str]) -> Handlers:
    """Return the handlers in the attributes of a deployable."""
    words = attributes.get(bitstreams.DRIVERS, '').split()
    return Handlers(
        types=tuple(attributes.get(bitstreams.TYPES, '').split()),
        drivers={name: version for name, _, version in map(_partition, words)},
        setup_roles=tuple(attributes.get(bitstreams.SETUP_ROLES, '').split()),
    )


def format_drivers(versions: Mapping[str, str]) -> str:
    """Return drivers and versions in the form of the attribute ``fpga_drivers``."""
    return ' '.join(
        f'{name}={version}' if version else name for name, version in versions.items()
    )


def list_handler_mismatches(bitstream: Bitstream, handlers: Handlers) -> Iterator[str]:
    """Yield one sentence per reason why no handler of a card loads a bitstream."""
    image_type = (bitstream.type or '').lower()
    if image_type and handlers.types and image_type not in handlers.types:
        names = ', '.join(handlers.types)
        yield f'Its type {bitstream.type} is unknown; the card loads {names}.'
    if not handlers.drivers:
        return
    name = _find_driver(bitstream, handlers)
    if name is None:
        names = ', '.join(handlers.drivers)
        yield f'Its driver {bitstream.driver} is unknown; the card has {names}.'
    else:
        yield from _find_version_mismatch(bitstream, handlers, name)


def is_older(actual: str, required: str) -> bool:
    """Return True if a version is older than another; only numbers count.

    >>> is_older('6.8.0-45-generic', '6.10')
    True
    """
    return _version_key(actual) < _version_key(required)


def _partition(word: str) -> tuple[str, str, str]:
    return word.partition('=')


def _find_driver(bitstream: Bitstream, handlers: Handlers) -> str | None:
    """Return the driver that an image names, or the first one of the card."""
    if bitstream.driver is None:
        return next(iter(handlers.drivers))
    normalized = _normalize(bitstream.driver)
    return next(
        (name for name in handlers.drivers if _normalize(name) == normalized), None
    )


def _find_version_mismatch(
    bitstream: Bitstream, handlers: Handlers, name: str
) -> Iterator[str]:
    required, actual = bitstream.driver_version, handlers.drivers[name]
    if not actual or not is_older(actual, required):
        return
    reason = f'It needs version {required} of driver {name}; the host has {actual}.'
    if bitstream.driver_path in handlers.setup_roles:
        reason += f' Set-up role {bitstream.driver_path} installs it.'
    yield reason


def _normalize(name: str) -> str:
    """Return a driver name in comparable form: modules and drivers differ in it."""
    return name.lower().replace('-', '_')


def _version_key(version: str) -> tuple[int, ...]:
    digits = takewhile(str.isdecimal, _SEPARATORS.split(version))
    numbers = [int(number) for number in digits]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
