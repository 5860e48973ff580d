# SPDX-License-Identifier: Apache-2.0
"""Selection of the bitstream for an ARQ, and checks that it fits the region."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from cyborg_lite.errors.bitstreams import BitstreamNotFound, BitstreamRefused
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Bitstream, Image, normalize_id
from cyborg_lite.model.profiles.device_profiles import Group
from cyborg_lite.model.text import format_value

# --- handlers: formats and host drivers of a card, and their versions ---
#
# The image properties ``type`` and ``driver`` choose the handler. Without them the card
# chooses it.


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
        drivers={
            name: version
            for name, _, version in (word.partition('=') for word in words)
        },
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
    return _list_numbers(actual) < _list_numbers(required)


def _find_driver(bitstream: Bitstream, handlers: Handlers) -> str | None:
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


def _list_numbers(version: str) -> tuple[int, ...]:
    digits = takewhile(str.isdecimal, _SEPARATORS.split(version))
    numbers = [int(number) for number in digits]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


_MOST_REASONS: Final = 5


@dataclass(frozen=True, slots=True)
class BitstreamQuery:
    """Properties of the requested bitstream; at least one of them is set."""

    image_id: str | None = None
    name: str | None = None
    function_id: str | None = None
    function_name: str | None = None

    def __str__(self) -> str:
        texts = {
            'image': self.image_id,
            'bitstream': self.name,
            'function': self.function_id,
            'function named': self.function_name,
        }
        return ', '.join(
            f'{label} {format_value(text)}'
            for label, text in texts.items()
            if text is not None
        )


def parse_query(group: Group) -> BitstreamQuery | None:
    """Return the bitstream that a group requests, or None if it requests none.

    :raises BitstreamRefused: the group names an image and a function, which may differ
    """
    properties = group.properties
    if not group.requests_bitstream:
        return None
    image_id = properties.get('bitstream_id')
    function_id = properties.get('function_id')
    if image_id is not None and function_id is not None:
        reason = 'the profile names a bitstream_id and a function_id; one is enough.'
        raise BitstreamRefused(image=format_value(image_id), reason=reason)
    return BitstreamQuery(
        image_id=image_id,
        name=properties.get('bitstream_name'),
        function_id=None if function_id is None else normalize_id(function_id),
        function_name=properties.get('function_name'),
    )


@dataclass(frozen=True, slots=True)
class RegionProperties:
    """A region as described by its driver; missing values are empty."""

    vendors: frozenset[str]
    boards: frozenset[str]
    version: str
    shells: frozenset[str]
    region_id: str
    function_id: str  # of the loaded bitstream; empty: none, or it cannot be read
    image_id: str | None  # loaded by this service; None: none
    handlers: Handlers = field(default_factory=Handlers)


def read_region_properties(
    attributes: Mapping[str, str], image_id: str | None = None
) -> RegionProperties:
    """Return the properties of a region from the attributes of its deployable.

    :param image_id: image that this service loaded; None: none
    """

    def read_names(key: str) -> frozenset[str]:
        """Return the normalized names in a value separated by spaces."""
        return frozenset(map(normalize_id, attributes.get(key, '').split()))

    return RegionProperties(
        vendors=read_names(bitstreams.VENDOR),
        boards=read_names(bitstreams.BOARD),
        version=attributes.get(bitstreams.VERSION, ''),
        shells=read_names(bitstreams.SHELL),
        region_id=normalize_id(attributes.get(bitstreams.REGION, '')),
        function_id=normalize_id(attributes.get(bitstreams.FUNCTION, '')),
        image_id=image_id,
        handlers=parse_handlers(attributes),
    )


def is_loaded(bitstream: Bitstream, region: RegionProperties) -> bool:
    """Check by the database and by the hardware whether a bitstream is loaded.

    Either source alone may be outdated. For a shell only the hardware counts, because a
    host reboot empties its regions.
    """
    if bitstream.is_shell:
        return bitstream.function_id in region.shells
    return (
        region.image_id == bitstream.image_id
        and region.function_id == bitstream.function_id
    )


def list_mismatches(bitstream: Bitstream, region: RegionProperties) -> tuple[str, ...]:
    """Return one sentence for each mismatch; an empty tuple if the bitstream fits."""
    return tuple(_find_mismatches(bitstream, region))


def _find_mismatches(bitstream: Bitstream, region: RegionProperties) -> Iterator[str]:
    if not region.vendors:
        yield 'The device cannot be programmed.'
        return
    if normalize_id(bitstream.vendor) not in region.vendors:
        yield f'It is for vendor {bitstream.vendor}, not {_join_names(region.vendors)}.'
    if normalize_id(bitstream.board) not in region.boards:
        yield f'It is for board {bitstream.board}, not {_join_names(region.boards)}.'
    # 1.1 fits a card of version 1.1.3; a card without a version fits all.
    if region.version and not f'{region.version}.'.startswith(f'{bitstream.version}.'):
        yield f'It is for version {bitstream.version}, not {region.version}.'
    if bitstream.shell_id is not None and bitstream.shell_id not in region.shells:
        yield f'It needs shell {bitstream.shell_id}, not {_join_names(region.shells)}.'
    if bitstream.region_id not in (None, region.region_id):
        yield f'It is for region {bitstream.region_id}, not {region.region_id}.'
    yield from list_handler_mismatches(bitstream, region.handlers)


def _join_names(names: frozenset[str]) -> str:
    return ' or '.join(sorted(names)) or 'none'


@dataclass(frozen=True, slots=True)
class BitstreamFit:
    """An image, and whether it can be loaded into a region."""

    image: Image
    bitstream: Bitstream | None  # None: the image is not a valid bitstream
    reasons: tuple[str, ...]  # empty: it fits


def rank_images(
    images: Iterable[Image], region: RegionProperties | None, largest: int
) -> tuple[BitstreamFit, ...]:
    """Return the images that fit, best first, then the others by id.

    A loaded bitstream comes first, then one that names the region, then one that names
    the shell, then the higher version.

    :param region: None: every valid bitstream fits
    :param largest: maximum size in bytes
    """
    fits = [_check_image(image, region, largest) for image in images]
    fits.sort(key=lambda fit: fit.image.id)
    fitting = [fit for fit in fits if not fit.reasons]
    fitting.sort(key=lambda fit: _rank_key(fit.bitstream, region), reverse=True)
    return (*fitting, *(fit for fit in fits if fit.reasons))


def _check_image(
    image: Image, region: RegionProperties | None, largest: int
) -> BitstreamFit:
    faults = bitstreams.list_image_faults(image, largest)
    if faults:
        return BitstreamFit(image, None, faults)
    bitstream = bitstreams.parse_bitstream(image, largest)
    mismatches = () if region is None else list_mismatches(bitstream, region)
    return BitstreamFit(image, bitstream, mismatches)


def _rank_key(
    bitstream: Bitstream | None, region: RegionProperties | None
) -> tuple[object, ...]:
    if bitstream is None:
        return ()
    return (
        region is not None and is_loaded(bitstream, region),
        bitstream.region_id is not None,
        bitstream.shell_id is not None,
        _version_key(bitstream.version),
    )


def _version_key(version: str) -> tuple[tuple[int, str], ...]:
    numbers = version.split('.')
    return tuple((int(p), '') if p.isdecimal() else (-1, p) for p in numbers)


def choose_bitstream(
    query: BitstreamQuery,
    images: Sequence[Image],
    region: RegionProperties,
    largest: int,
) -> Bitstream:
    """Return the only bitstream that matches the query and fits the region.

    :param largest: maximum size in bytes
    :raises BitstreamNotFound: no image matches and fits, or several do
    :raises BitstreamRefused: exactly one image matches, and it does not fit
    """
    matches = [
        fit for fit in rank_images(images, region, largest) if _matches(fit, query)
    ]
    candidates = [fit for fit in matches if not fit.reasons]
    if len(candidates) == 1 and candidates[0].bitstream is not None:
        return candidates[0].bitstream
    if len(candidates) > 1:
        images_text = ', '.join(
            f'{fit.image.id} ({format_value(fit.image.name)})'
            if fit.image.name
            else fit.image.id
            for fit in candidates
        )
        reason = (
            f'{len(candidates)} images fit {query}; name one by bitstream_id: '
            f'{images_text}'
        )
        raise BitstreamNotFound(reason=reason)
    if not matches:
        raise BitstreamNotFound(reason=f'there is no {query}.')
    if len(matches) == 1:
        image_id = format_value(matches[0].image.id)
        raise BitstreamRefused(image=image_id, reason=' '.join(matches[0].reasons))
    reasons = '; '.join(
        f'{fit.image.id}: {fit.reasons[0]}' for fit in matches[:_MOST_REASONS]
    )
    raise BitstreamNotFound(reason=f'no image fits {query}: {reasons}')


def _matches(fit: BitstreamFit, query: BitstreamQuery) -> bool:
    """Compare the raw image properties, so that an invalid image is reported.

    A name is the name of the bitstream, or the name of the image with its suffix.
    """
    properties = fit.image.properties
    function = properties.get('accel:function_id') or properties.get('function_uuid')
    actual = {
        'image_id': fit.image.id,
        'function_id': normalize_id(function or ''),
        'function_name': properties.get('function_name'),
    }
    requested = {key: getattr(query, key) for key in actual}
    if query.name not in (None, properties.get('bs-name'), fit.image.name):
        return False
    return all(
        value is None or actual[key] == value for key, value in requested.items()
    )
