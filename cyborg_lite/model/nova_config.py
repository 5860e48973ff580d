# SPDX-License-Identifier: Apache-2.0
"""Which devices Nova's own configuration gives to Nova.

The rules are those of ``[pci] device_spec`` and of ``[devices] enabled_mdev_types`` in
Nova's configuration reference, with the names that both had before.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_SPECS: Final = (
    ('pci', 'device_spec'),
    ('pci', 'passthrough_whitelist'),
    ('DEFAULT', 'pci_passthrough_whitelist'),
)
_TYPES: Final = (('devices', 'enabled_mdev_types'), ('devices', 'enabled_vgpu_types'))
_OF_TYPE: Final = ('mdev_', 'vgpu_')
_ANY: Final = '*'
_FIELDS: Final = ('domain', 'bus', 'slot', 'function')

# Of files as oslo.config reads them: section, then option, each with all its values.
Sections = Mapping[str, Mapping[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Function:
    """A PCI function as Nova sees it."""

    address: str
    vendor: str  # four hex digits, as the next
    product: str
    parent: str | None = None  # the physical function, if this one is virtual
    interfaces: frozenset[str] = frozenset()  # of itself and of its parent
    mdev_types: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """One entry of the configuration that gives functions to Nova."""

    source: str
    """For people: the option and what it says."""
    spec: Mapping[str, Any] | None  # JSON; None: it is about an mdev type
    mdev_type: str = ''
    addresses: frozenset[str] = frozenset()  # of cards for that type; empty: all

    def covers(self, function: Function) -> bool:
        if self.spec is not None:
            return _matches(self.spec, function)
        here = {function.address, function.parent or function.address}
        wanted = not self.addresses or bool(self.addresses & here)
        return wanted and self.mdev_type in function.mdev_types


@dataclass(frozen=True, slots=True)
class NovaConfig:
    claims: tuple[Claim, ...] = ()
    mistakes: tuple[str, ...] = ()  # entries that nobody can make sense of

    def claim(self, functions: Iterable[Function]) -> Claim | None:
        """The first entry that gives any of them to Nova."""
        those = tuple(functions)
        return next(
            (claim for claim in self.claims if any(map(claim.covers, those))), None
        )


def read(texts: Iterable[str]) -> NovaConfig:
    """What files say, later ones over earlier ones."""
    sections = _sections(texts)
    claims: list[Claim] = []
    mistakes: list[str] = []
    for section, option in _SPECS:
        for value in sections.get(section, {}).get(option, ()):
            source = f'[{section}] {option} = {value}'
            try:
                claims += [Claim(source, spec) for spec in _specs(value)]
            except ValueError:
                mistakes.append(source)
    return NovaConfig((*claims, *_mdev_claims(sections)), tuple(mistakes))


# --- files --------------------------------------------------------------------------


def _sections(texts: Iterable[str]) -> Sections:
    found: dict[str, dict[str, list[str]]] = {}
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
                values = found.setdefault(section, {}).setdefault(option, [])
                values.append(value)
    return found


def _option(line: str) -> tuple[str, str]:
    name, _, value = re.sub(r'\s*[=:]\s*', '\0', line, count=1).partition('\0')
    if len(value) > 1 and value[0] == value[-1] and value[0] in '\'"':
        value = value[1:-1]
    return name, value


def _list(sections: Sections, section: str, option: str) -> list[str]:
    """Of an option that has one value, the last one."""
    values = sections.get(section, {}).get(option, ())
    return (
        [part.strip() for part in values[-1].split(',') if part.strip()]
        if values
        else []
    )


# --- vGPUs --------------------------------------------------------------------------


def _mdev_claims(sections: Sections) -> Iterator[Claim]:
    for section, option in _TYPES:
        types = _list(sections, section, option)
        places = {each: _addresses(sections, each) for each in types}
        if not all(places.values()):
            # Nova then makes the first type alone, on every card that can carry it.
            types, places = types[:1], {}
        for each in types:
            source = f'[{section}] {option} = {each}'
            yield Claim(source, None, each, places.get(each, frozenset()))


def _addresses(sections: Sections, mdev_type: str) -> frozenset[str]:
    names = (f'{prefix}{mdev_type}' for prefix in _OF_TYPE)
    those = (_list(sections, name, 'device_addresses') for name in names)
    return frozenset(address.lower() for each in those for address in each)


# --- device_spec --------------------------------------------------------------------


def _specs(value: str) -> list[Mapping[str, Any]]:
    """:raises ValueError: it is not what Nova takes"""
    said = json.loads(value)
    specs = said if isinstance(said, list) else [said]
    for spec in specs:
        if not isinstance(spec, dict):
            raise ValueError
        _check(spec)
    return specs


def _check(spec: Mapping[str, Any]) -> None:
    """:raises ValueError: a field cannot be compared with anything"""
    for field in ('vendor_id', 'product_id'):
        _same(spec.get(field, _ANY), '0000')
    address = spec.get('address', '')
    if isinstance(address, dict):
        for pattern in address.values():
            _matches_pattern(pattern, '')
    else:
        _same_address(address, '0000:00:00.0')


def _matches(spec: Mapping[str, Any], function: Function) -> bool:
    ids = (spec.get('vendor_id', _ANY), spec.get('product_id', _ANY))
    if not (_same(ids[0], function.vendor) and _same(ids[1], function.product)):
        return False
    if 'devname' in spec:
        return spec['devname'] in function.interfaces
    address = spec.get('address') or ''
    if isinstance(address, dict):
        return _matches_patterns(address, function.address)
    if _same_address(address, function.address):
        return True
    # A physical function stands for all its virtual ones, a pattern for what it fits.
    return (
        function.parent is not None
        and not _is_pattern(address)
        and _same_address(address, function.parent)
    )


def _same(wanted: Any, digits: str) -> bool:
    """Any: JSON. Numbers are hexadecimal.

    :raises ValueError: it is not one
    """
    if not isinstance(wanted, str):
        raise ValueError
    return wanted.strip() == _ANY or int(wanted, 16) == int(digits, 16)


def _parts(address: str) -> list[str]:
    """Domain, bus, slot and function; what is left out, from the left, is any."""
    rest, _, function = address.partition('.')
    fields = rest.split(':')
    if len(fields) > 3:
        raise ValueError
    fields = [_ANY] * (3 - len(fields)) + fields
    return [field.strip() or _ANY for field in (*fields, function)]


def _is_pattern(address: str) -> bool:
    return _ANY in _parts(address)


def _same_address(wanted: Any, address: str) -> bool:
    """Any: JSON.

    :raises ValueError: it is no address
    """
    if not isinstance(wanted, str):
        raise ValueError
    pairs = zip(_parts(wanted), _parts(address), strict=True)
    return all(_same(part, own) for part, own in pairs)


def _matches_patterns(patterns: Mapping[str, Any], address: str) -> bool:
    own: Collection[str] = _parts(address)
    pairs = zip(_FIELDS, own, strict=True)
    return all(_matches_pattern(patterns.get(f, '.*'), part) for f, part in pairs)


def _matches_pattern(pattern: Any, text: str) -> bool:
    """Any: JSON.

    :raises ValueError: it is no regular expression
    """
    try:
        return re.match(pattern, text) is not None
    except (re.error, TypeError):
        raise ValueError from None
