# SPDX-License-Identifier: Apache-2.0
"""Bitstreams: images of Glance that say what they are and what they are for.

Whoever may upload an image writes its properties, so none of them is believed before
it was read here, and none ever becomes a path or an argument of a command.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cyborg_lite.exceptions import BitstreamRefused
from cyborg_lite.model import topology, uuids
from cyborg_lite.model.text import is_storable, shown

TAG: Final = 'FPGA'

# How an FPGA driver tells in the attributes of a deployable what fits it. Where a card
# goes by several names they stand beside each other with a space between.
VENDOR: Final = 'fpga_vendor'
BOARD: Final = 'fpga_board'
VERSION: Final = 'fpga_version'
SHELL: Final = 'fpga_shell'
REGION: Final = 'fpga_region'
FUNCTION: Final = 'fpga_function'

# Digests that nobody can forge, with the number of hex digits of each.
_DIGESTS: Final = {'sha256': 64, 'sha384': 96, 'sha512': 128}
_LONGEST: Final = 255
_WORD: Final = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.+-]*')
_HEX: Final = re.compile(r'[0-9a-f]+')


@dataclass(frozen=True, slots=True)
class Image:
    """An image as Glance shows it, with nothing of it believed yet."""

    id: str
    name: str | None
    status: str
    tags: tuple[str, ...]
    size: int | None  # bytes; None: nothing was uploaded
    hash_algo: str | None
    hash_value: str | None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bitstream:
    """An image that has been read. Ids are hex digits alone, in lower case."""

    image_id: str
    name: str
    uuid: str
    vendor: str
    board: str
    version: str
    function_id: str
    size: int  # bytes
    hash_algo: str
    hash_value: str
    shell_id: str | None = None  # None: it is itself a shell
    region_id: str | None = None  # None: any region of the board
    function_name: str | None = None
    description: str = ''
    driver: str | None = None  # None: no driver is needed in the guest
    driver_version: str = ''
    driver_path: str = ''  # only ever shown; whoever runs the guest installs it
    topology: str | None = None  # None: what the driver finds after loading

    @property
    def is_shell(self) -> bool:
        return self.shell_id is None


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """What a host is told to load, and where."""

    address: str  # of the function that manages the card
    part: str  # what the region adds to the name of the card; empty: the card itself
    bitstream: Bitstream
    # Milliseconds, by the clock of the database; 0: not known.
    ordered_at: int = 0


def normal_id(text: str) -> str:
    """A UUID, an interface id or a register in the one form that can be compared."""
    return text.strip().lower().removeprefix('0x').replace('-', '')


def read(image: Image, largest: int) -> Bitstream:
    """The bitstream that an image is.

    :param largest: bytes that it may have
    :raises BitstreamRefused: with everything that is wrong with it
    """
    wrong = faults(image, largest)
    if wrong:
        raise BitstreamRefused(image=shown(image.id), reason=' '.join(wrong))
    said = image.properties
    optional = {key: said.get(key) or None for key in _OPTIONAL}
    shell, region = optional['shell_id'], optional['region_uuid']
    return Bitstream(
        image_id=image.id,
        name=said['bs-name'],
        uuid=normal_id(said['bs-uuid']),
        vendor=said['vendor'],
        board=said['board'],
        version=said['version'],
        function_id=normal_id(_function_id(said)),
        size=image.size or 0,
        hash_algo=image.hash_algo or '',
        hash_value=image.hash_value or '',
        shell_id=normal_id(shell) if shell else None,
        region_id=normal_id(region) if region else None,
        function_name=optional['function_name'],
        description=optional['description'] or '',
        driver=optional['driver'],
        driver_version=said['driver_ver'],
        driver_path=said['driver_path'],
        topology=optional['topology'],
    )


def faults(image: Image, largest: int) -> tuple[str, ...]:
    """All that is wrong with an image, a sentence each; none: it is a bitstream."""
    return (
        *_faults_of_file(image, largest),
        *_faults_of_digest(image),
        *_faults_of_properties(image.properties),
    )


def _faults_of_file(image: Image, largest: int) -> Iterator[str]:
    if uuids.canonical(image.id) != image.id:
        yield 'Its id is no UUID.'
    if TAG not in image.tags:
        yield f'It is not tagged {TAG}.'
    if image.status != 'active':
        yield f'Its status is {shown(image.status)}, not active.'
    name = image.name or ''
    if '/' in name or '\\' in name or '..' in name or not name.isprintable():
        yield f'Its name {shown(name)} looks like a path.'
    if image.size is None or image.size < 1:
        yield 'It is empty.'
    elif image.size > largest:
        yield f'Its {image.size} bytes are more than the {largest} allowed.'


def _faults_of_digest(image: Image) -> Iterator[str]:
    digits = _DIGESTS.get(image.hash_algo or '')
    value = image.hash_value or ''
    if digits is None:
        yield f'Its os_hash_algo is none of {", ".join(_DIGESTS)}.'
    elif len(value) != digits or not _HEX.fullmatch(value):
        yield f'Its os_hash_value is no {image.hash_algo} digest.'


def _faults_of_properties(said: Mapping[str, str]) -> Iterator[str]:
    missing = [key for key in _RULES if key not in _OPTIONAL and not said.get(key)]
    if not _function_id(said):
        missing.append('function_uuid')
    if missing:
        # In one sentence: requests keep as much as fits a line.
        yield f'It lacks {", ".join(missing)}.'
    for key, rule in _RULES.items():
        value = said.get(key)
        if not value:
            continue
        if not isinstance(value, str) or not rule.fits(value):
            yield f'Its {key} {shown(value)} is not {rule.what}.'
    text = said.get('topology')
    if isinstance(text, str) and text:
        yield from (f'Its topology: {fault}' for fault in topology.faults(text))


def _function_id(said: Mapping[str, str]) -> str:
    """Clouds that had Cyborg before have images with the other key."""
    return said.get('accel:function_id') or said.get('function_uuid') or ''


@dataclass(frozen=True, slots=True)
class _Rule:
    what: str
    fits: Callable[[str], bool]


def _is_word(value: str) -> bool:
    return bool(len(value) <= _LONGEST and _WORD.fullmatch(value) and '..' not in value)


def _is_text(value: str) -> bool:
    return len(value) <= _LONGEST and is_storable(value) and value.isprintable()


_A_WORD: Final = _Rule(
    'a word of letters, digits and _ . + - without two dots', _is_word
)
_AN_ID: Final = _Rule('a UUID', lambda value: uuids.canonical(value) is not None)
_A_TEXT: Final = _Rule(f'a line of at most {_LONGEST} characters', _is_text)
_ANYTHING: Final = _Rule('text', lambda value: True)  # has rules of its own

_RULES: Final[Mapping[str, _Rule]] = {
    'bs-name': _A_WORD,
    'bs-uuid': _AN_ID,
    'vendor': _A_WORD,
    'board': _A_WORD,
    'version': _A_WORD,
    'shell_id': _A_WORD,
    'driver': _A_WORD,
    'driver_ver': _A_WORD,
    'driver_path': _A_TEXT,
    'topology': _ANYTHING,
    'description': _A_TEXT,
    'region_uuid': _AN_ID,
    'function_uuid': _AN_ID,
    'accel:function_id': _AN_ID,
    'function_name': _A_WORD,
}
_OPTIONAL: Final = frozenset(
    {
        'shell_id',
        'driver',
        'topology',
        'description',
        'region_uuid',
        'function_name',
        # One of the two is wanted, which is checked apart.
        'function_uuid',
        'accel:function_id',
    }
)
