# SPDX-License-Identifier: Apache-2.0
"""Bitstreams: Glance images whose properties describe the bitstream and its card.

Any user who may upload an image writes its properties. They are validated here, and
never become a path or an argument of a command.
"""

import enum
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cyborg_lite.errors.bitstreams import BitstreamRefused
from cyborg_lite.model import uuids
from cyborg_lite.model.bitstreams import function_layout as topology
from cyborg_lite.model.text import format_value, is_storable

TAG: Final = 'FPGA'

# Attributes of a deployable in which an FPGA driver states what fits it. Several names
# of a card are separated by spaces.
VENDOR: Final = 'fpga_vendor'
BOARD: Final = 'fpga_board'
VERSION: Final = 'fpga_version'
SHELL: Final = 'fpga_shell'
REGION: Final = 'fpga_region'
FUNCTION: Final = 'fpga_function'
# Formats of images that the driver loads, the preferred one first.
TYPES: Final = 'fpga_types'
# Host drivers that images may name, as `name` or `name=version`, a loaded one first.
DRIVERS: Final = 'fpga_drivers'
# Set-up roles that the operator allows images to name.
SETUP_ROLES: Final = 'fpga_setup_roles'

# Collision-resistant digests, with their number of hex digits.
_DIGESTS: Final = {'sha256': 64, 'sha384': 96, 'sha512': 128}
_MAX_LENGTH: Final = 255
_WORD: Final = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.+-]*')
_HEX: Final = re.compile(r'[0-9a-f]+')


@dataclass(frozen=True, slots=True)
class Image:
    """An image as Glance shows it, before validation."""

    id: str
    name: str | None
    status: str
    tags: tuple[str, ...]
    size: int | None  # bytes; None: no data was uploaded
    hash_algo: str | None
    hash_value: str | None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bitstream:
    """A validated bitstream image. Ids are lower-case hex digits without separators."""

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
    shell_id: str | None = None  # None: the bitstream is a shell
    region_id: str | None = None  # None: fits any region of the board
    function_name: str | None = None
    description: str = ''
    driver: str | None = None  # of the host; None: the first of the card
    driver_version: str = ''  # lowest version of this driver
    driver_path: str = ''  # set-up role that reasons name if the operator allows it
    topology: str | None = None  # None: the driver detects it after the load
    type: str | None = None  # format of the file; None: the first of the card

    @property
    def is_shell(self) -> bool:
        """Return True if the bitstream is a shell, which replaces all regions."""
        return self.shell_id is None


@dataclass(frozen=True, slots=True)
class LoadOrder:
    """A bitstream to load on a host, and the region to load it into."""

    address: str  # control address of the card
    # Name of the region without the name of the card; empty: the card itself.
    region_suffix: str
    bitstream: Bitstream
    # Milliseconds since the epoch, by the clock of the database; 0: not known.
    ordered_at: int = 0


def normalize_id(text: str) -> str:
    """Return a UUID, an interface id or a register value in comparable form."""
    return text.strip().lower().removeprefix('0x').replace('-', '')


def parse_bitstream(image: Image, largest: int) -> Bitstream:
    """Return the bitstream that an image contains.

    :param largest: maximum size in bytes
    :raises BitstreamRefused: the image has faults; the error lists all of them
    """
    faults = list_image_faults(image, largest)
    if faults:
        raise BitstreamRefused(image=format_value(image.id), reason=' '.join(faults))
    properties = image.properties
    optional = {key: properties.get(key) or None for key in _OPTIONAL}
    shell, region = optional['shell_id'], optional['region_uuid']
    return Bitstream(
        image_id=image.id,
        name=properties['bs-name'],
        uuid=normalize_id(properties['bs-uuid']),
        vendor=properties['vendor'],
        board=properties['board'],
        version=properties['version'],
        function_id=normalize_id(_function_id(properties)),
        size=image.size or 0,
        hash_algo=image.hash_algo or '',
        hash_value=image.hash_value or '',
        shell_id=normalize_id(shell) if shell else None,
        region_id=normalize_id(region) if region else None,
        function_name=optional['function_name'],
        description=optional['description'] or '',
        driver=optional['driver'],
        driver_version=properties['driver_ver'],
        driver_path=properties['driver_path'],
        topology=optional['topology'],
        type=optional['type'],
    )


def list_image_faults(image: Image, largest: int) -> tuple[str, ...]:
    """Return one sentence for each fault of an image; empty if it is a valid bitstream.

    :param largest: maximum size in bytes
    """
    return (
        *_check_file(image, largest),
        *_check_digest(image),
        *_check_properties(image.properties),
    )


def _check_file(image: Image, largest: int) -> Iterator[str]:
    if uuids.normalize_uuid(image.id) != image.id:
        yield 'Its id is not a UUID.'
    if TAG not in image.tags:
        yield f'It is not tagged {TAG}.'
    if image.status != 'active':
        yield f'Its status is {format_value(image.status)}, not active.'
    name = image.name or ''
    if '/' in name or '\\' in name or '..' in name or not name.isprintable():
        yield f'Its name {format_value(name)} looks like a path.'
    if image.size is None or image.size < 1:
        yield 'It is empty.'
    elif image.size > largest:
        yield f'Its {image.size} bytes are more than the {largest} allowed.'


def _check_digest(image: Image) -> Iterator[str]:
    digits = _DIGESTS.get(image.hash_algo or '')
    value = image.hash_value or ''
    if digits is None:
        yield f'Its os_hash_algo is not one of {", ".join(_DIGESTS)}.'
    elif len(value) != digits or not _HEX.fullmatch(value):
        yield f'Its os_hash_value is not a {image.hash_algo} digest.'


def _check_properties(properties: Mapping[str, str]) -> Iterator[str]:
    missing = [
        key for key in _RULES if key not in _OPTIONAL and not properties.get(key)
    ]
    if not _function_id(properties):
        missing.append('function_uuid')
    if missing:
        # In one sentence, because the stored reason of an ARQ is limited.
        yield f'It lacks {", ".join(missing)}.'
    for key, rule in _RULES.items():
        value = properties.get(key)
        if not value:
            continue
        if not isinstance(value, str) or not rule.fits(value):
            yield f'Its {key} {format_value(value)} is not {rule.description}.'
    text = properties.get('topology')
    if isinstance(text, str) and text:
        yield from (
            f'Its topology: {fault}' for fault in topology.list_topology_faults(text)
        )


def _function_id(properties: Mapping[str, str]) -> str:
    """Return the function id; images for OpenStack Cyborg use the second key."""
    return properties.get('accel:function_id') or properties.get('function_uuid') or ''


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule for the value of an image property."""

    description: str
    fits: Callable[[str], bool]


def _is_word(value: str) -> bool:
    return bool(
        len(value) <= _MAX_LENGTH and _WORD.fullmatch(value) and '..' not in value
    )


def _is_text(value: str) -> bool:
    return len(value) <= _MAX_LENGTH and is_storable(value) and value.isprintable()


_A_WORD: Final = _Rule(
    'a word of letters, digits and _ . + - without two dots', _is_word
)
_AN_ID: Final = _Rule('a UUID', lambda value: uuids.normalize_uuid(value) is not None)
_A_TEXT: Final = _Rule(f'a line of at most {_MAX_LENGTH} characters', _is_text)
_ANYTHING: Final = _Rule('text', lambda value: True)  # validated separately

_RULES: Final[Mapping[str, _Rule]] = {
    'bs-name': _A_WORD,
    'bs-uuid': _AN_ID,
    'vendor': _A_WORD,
    'board': _A_WORD,
    'version': _A_WORD,
    'shell_id': _A_WORD,
    'type': _A_WORD,
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
        'type',
        'driver',
        'topology',
        'description',
        'region_uuid',
        'function_name',
        # One of these two is required; this is checked separately.
        'function_uuid',
        'accel:function_id',
    }
)


# --- programming jobs as clients read them before 2.7 ---


class ProgramState(enum.StrEnum):
    """States of a programming job."""

    RUNNING = 'running'
    DONE = 'done'
    FAILED = 'failed'


class ProgramStep(enum.StrEnum):
    """The step that started last."""

    ACCEPTED = 'accepted'
    CHECKING = 'checking'
    """The conductor checks the image again."""
    LOADING = 'loading'
    """The host downloads and loads the image."""
    LOADED = 'loaded'

    @property
    def progress(self) -> int:
        """Percentage by step; vendor tools do not report their progress."""
        return {'accepted': 0, 'checking': 10, 'loading': 25, 'loaded': 100}[self.value]
