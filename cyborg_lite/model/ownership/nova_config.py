# SPDX-License-Identifier: Apache-2.0
"""Devices that the configuration of Nova assigns to Nova.

The rules are those of ``[pci] device_spec`` and ``[devices] enabled_mdev_types`` in the
configuration reference of Nova. The former names of both options are also read.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_SPECS: Final = (
    ('pci', 'device_spec'),
    ('pci', 'passthrough_whitelist'),
    ('DEFAULT', 'pci_passthrough_whitelist'),
)
_TYPES: Final = (('devices', 'enabled_mdev_types'), ('devices', 'enabled_vgpu_types'))
_TYPE_SECTION_PREFIXES: Final = ('mdev_', 'vgpu_')
_ANY: Final = '*'
_FIELDS: Final = ('domain', 'bus', 'slot', 'function')

# All values of each option, by section and option, as oslo.config reads files.
Sections = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class NovaPciFunction:
    """The properties of a PCI function that Nova compares."""

    address: str
    vendor: str  # four hex digits, like the product
    product: str
    parent: str | None = None  # address of the physical function; None: not virtual
    interfaces: frozenset[str] = (
        frozenset()
    )  # network interfaces of the function and its parent
    mdev_types: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NovaDeviceClaim:
    """An entry of the configuration that assigns devices to Nova."""

    source: str
    """The option and its value, for messages."""
    spec: Mapping[str, Any] | None  # JSON; None: the entry is an mdev type
    mdev_type: str = ''
    addresses: frozenset[str] = frozenset()  # cards for the mdev type; empty: all

    def covers(self, function: NovaPciFunction) -> bool:
        """Check whether the entry assigns the function to Nova."""
        if self.spec is not None:
            return _matches(self.spec, function)
        addresses = {function.address, function.parent or function.address}
        is_selected = not self.addresses or bool(self.addresses & addresses)
        return is_selected and self.mdev_type in function.mdev_types


@dataclass(frozen=True, slots=True)
class NovaConfig:
    """Entries of the configuration that assign devices to Nova."""

    claims: tuple[NovaDeviceClaim, ...] = ()
    mistakes: tuple[str, ...] = ()  # invalid entries

    def find_claim(
        self, functions: Iterable[NovaPciFunction]
    ) -> NovaDeviceClaim | None:
        """Return the first entry that assigns any of the functions to Nova, or None."""
        candidates = tuple(functions)
        return next(
            (claim for claim in self.claims if any(map(claim.covers, candidates))), None
        )


def parse_nova_config(texts: Iterable[str]) -> NovaConfig:
    """Parse configuration files; later files override earlier ones.

    :param texts: contents of the files
    """
    sections = _sections(texts)
    claims: list[NovaDeviceClaim] = []
    mistakes: list[str] = []
    for section, option in _SPECS:
        for value in sections.get(section, {}).get(option, ()):
            source = f'[{section}] {option} = {value}'
            try:
                claims += [NovaDeviceClaim(source, spec) for spec in parse_specs(value)]
            except ValueError:
                mistakes.append(source)
    return NovaConfig((*claims, *_mdev_claims(sections)), tuple(mistakes))


# --- files --------------------------------------------------------------------------


def _sections(texts: Iterable[str]) -> Sections:
    sections: dict[str, dict[str, list[str]]] = {}
    for text in texts:
        section = 'DEFAULT'
        values: list[str] = []
        for line in text.splitlines():
            stripped = line.strip()
            if not stripped or stripped[0] in '#;':
                continue
            if line[0].isspace() and values:
                values[-1] = f'{values[-1]} {stripped}'.strip()
            elif stripped.startswith('['):
                section, values = stripped.strip('[]'), []
            else:
                option, value = _option(stripped)
                values = sections.setdefault(section, {}).setdefault(option, [])
                values.append(value)
    return sections


def _option(line: str) -> tuple[str, str]:
    name, _, value = re.sub(r'\s*[=:]\s*', '\0', line, count=1).partition('\0')
    if len(value) > 1 and value[0] == value[-1] and value[0] in '\'"':
        value = value[1:-1]
    return name, value


def _list(sections: Sections, section: str, option: str) -> list[str]:
    """Return the items of a list option; its last value counts."""
    values = sections.get(section, {}).get(option, ())
    return (
        [item.strip() for item in values[-1].split(',') if item.strip()]
        if values
        else []
    )


# --- vGPUs --------------------------------------------------------------------------


def _mdev_claims(sections: Sections) -> Iterator[NovaDeviceClaim]:
    for section, option in _TYPES:
        types = _list(sections, section, option)
        addresses = {name: _addresses(sections, name) for name in types}
        if not all(addresses.values()):
            # Nova then creates only the first type, on every card that supports it.
            types, addresses = types[:1], {}
        for name in types:
            source = f'[{section}] {option} = {name}'
            cards = addresses.get(name, frozenset())
            yield NovaDeviceClaim(source, None, name, cards)


def _addresses(sections: Sections, mdev_type: str) -> frozenset[str]:
    names = (f'{prefix}{mdev_type}' for prefix in _TYPE_SECTION_PREFIXES)
    lists = (_list(sections, name, 'device_addresses') for name in names)
    return frozenset(address.lower() for items in lists for address in items)


# --- device_spec --------------------------------------------------------------------


def parse_specs(value: str) -> list[Mapping[str, Any]]:
    """Return the device specs in a value.

    :raises ValueError: Nova would reject the value
    """
    content = json.loads(value)
    specs = content if isinstance(content, list) else [content]
    for spec in specs:
        if not isinstance(spec, dict):
            raise ValueError
        _check(spec)
    return specs


def _check(spec: Mapping[str, Any]) -> None:
    """Check that all fields can be compared."""
    for field in ('vendor_id', 'product_id'):
        _matches_digits(spec.get(field, _ANY), '0000')
    if not isinstance(spec.get('devname', ''), str):
        raise ValueError
    address = spec.get('address', '')
    if isinstance(address, dict):
        for pattern in address.values():
            _matches_pattern(pattern, '')
    elif isinstance(address, str):
        # A comparison would end at the first field that differs.
        for digits in _split_address(address):
            _matches_digits(digits, '0000')
    else:
        raise ValueError


def _matches(spec: Mapping[str, Any], function: NovaPciFunction) -> bool:
    ids = (spec.get('vendor_id', _ANY), spec.get('product_id', _ANY))
    if not (
        _matches_digits(ids[0], function.vendor)
        and _matches_digits(ids[1], function.product)
    ):
        return False
    if 'devname' in spec:
        return spec['devname'] in function.interfaces
    address = spec.get('address') or ''
    if isinstance(address, dict):
        pairs = zip(_FIELDS, _split_address(function.address), strict=True)
        return all(_matches_pattern(address.get(f, '.*'), own) for f, own in pairs)
    if _same_address(address, function.address):
        return True
    # An exact address of a physical function includes its virtual functions.
    return (
        function.parent is not None
        and _ANY not in _split_address(address)
        and _same_address(address, function.parent)
    )


def _matches_digits(expected: Any, digits: str) -> bool:
    """Compare a JSON value with hexadecimal digits."""
    if not isinstance(expected, str):
        raise ValueError
    return expected.strip() == _ANY or int(expected, 16) == int(digits, 16)


def _split_address(address: str) -> list[str]:
    """Return domain, bus, slot and function; missing fields match any value."""
    prefix, _, function = address.partition('.')
    fields = prefix.split(':')
    if len(fields) > 3:
        raise ValueError
    fields = [_ANY] * (3 - len(fields)) + fields
    return [field.strip() or _ANY for field in (*fields, function)]


def _same_address(expected: Any, address: str) -> bool:
    """Compare a JSON value with an address."""
    if not isinstance(expected, str):
        raise ValueError
    pairs = zip(_split_address(expected), _split_address(address), strict=True)
    return all(_matches_digits(digits, own) for digits, own in pairs)


def _matches_pattern(pattern: Any, text: str) -> bool:
    """Match a text with a pattern from JSON."""
    try:
        return re.match(pattern, text) is not None
    except (re.error, TypeError):
        raise ValueError from None
