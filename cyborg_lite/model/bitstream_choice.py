# SPDX-License-Identifier: Apache-2.0
"""Which bitstream a request means, and whether it fits the card that it got."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cyborg_lite.exceptions import BitstreamNotFound, BitstreamRefused
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstreams import Bitstream, Image, normal_id
from cyborg_lite.model.text import shown

_MOST_REASONS: Final = 5
KEYS: Final = (
    'accel:bitstream_id',
    'accel:bitstream_name',
    'accel:function_id',
    'accel:function_name',
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a group of a device profile says of the bitstream; one of them is given."""

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
        return ', '.join(f'{k} {shown(v)}' for k, v in texts.items() if v is not None)


def names_one(group: Mapping[str, str]) -> bool:
    """Whether something must be loaded for a request of the group."""
    return any(key in group for key in KEYS)


def wanted(group: Mapping[str, str]) -> Wanted | None:
    """None: the group takes the card as it is.

    :raises BitstreamRefused: it names an image and a function, which may differ
    """
    function = group.get('accel:function_id')
    found = Wanted(
        image_id=group.get('accel:bitstream_id'),
        name=group.get('accel:bitstream_name'),
        function_id=None if function is None else normal_id(function),
        function_name=group.get('accel:function_name'),
    )
    if found == Wanted():
        return None
    if found.image_id is not None and found.function_id is not None:
        reason = 'the profile names a bitstream_id and a function_id; one is enough.'
        raise BitstreamRefused(image=shown(found.image_id), reason=reason)
    return found


@dataclass(frozen=True, slots=True)
class Target:
    """A region as its driver describes it; what it does not say is empty."""

    vendors: frozenset[str]
    boards: frozenset[str]
    version: str
    shells: frozenset[str]
    region_id: str
    function_id: str  # loaded now; empty: nothing, or it cannot be read
    image_id: str | None  # that we loaded; None: none, or somebody else did


def target(attributes: Mapping[str, str], image_id: str | None = None) -> Target:
    """By the attributes of a deployable."""

    def words(key: str) -> frozenset[str]:
        return frozenset(normal_id(word) for word in attributes.get(key, '').split())

    return Target(
        vendors=words(bitstreams.VENDOR),
        boards=words(bitstreams.BOARD),
        version=attributes.get(bitstreams.VERSION, ''),
        shells=words(bitstreams.SHELL),
        region_id=normal_id(attributes.get(bitstreams.REGION, '')),
        function_id=normal_id(attributes.get(bitstreams.FUNCTION, '')),
        image_id=image_id,
    )


def is_loaded(bitstream: Bitstream, region: Target) -> bool:
    """By both what we did and what the hardware says: either alone may be outdated.

    Of a shell the hardware tells alone; what was in its regions is gone with a boot.
    """
    if bitstream.is_shell:
        return bitstream.function_id in region.shells
    return (
        region.image_id == bitstream.image_id
        and region.function_id == bitstream.function_id
    )


def misfits(bitstream: Bitstream, region: Target) -> tuple[str, ...]:
    """Why it cannot be loaded there, a sentence each; none: it fits."""
    return tuple(_misfits(bitstream, region))


def _misfits(bitstream: Bitstream, region: Target) -> Iterator[str]:
    if not region.vendors:
        yield 'The device cannot be programmed.'
        return
    if normal_id(bitstream.vendor) not in region.vendors:
        yield f'It is for vendor {bitstream.vendor}, not {_any(region.vendors)}.'
    if normal_id(bitstream.board) not in region.boards:
        yield f'It is for board {bitstream.board}, not {_any(region.boards)}.'
    if not _version_fits(bitstream.version, region.version):
        yield f'It is for version {bitstream.version}, not {region.version}.'
    if bitstream.shell_id is not None and bitstream.shell_id not in region.shells:
        yield f'It needs shell {bitstream.shell_id}, not {_any(region.shells)}.'
    if bitstream.region_id not in (None, region.region_id):
        yield f'It is for region {bitstream.region_id}, not {region.region_id}.'


def _any(names: frozenset[str]) -> str:
    return ' or '.join(sorted(names)) or 'none'


def _version_fits(asked: str, there: str) -> bool:
    """``1.1`` fits a card of version 1.1.3; a card that tells none fits all."""
    return not there or there == asked or there.startswith(f'{asked}.')


@dataclass(frozen=True, slots=True)
class Fit:
    """One image as it stands to a region."""

    image: Image
    bitstream: Bitstream | None  # None: it is no bitstream at all
    reasons: tuple[str, ...]  # why it is refused; none: it fits


def ranked(
    images: Iterable[Image], region: Target | None, largest: int
) -> tuple[Fit, ...]:
    """Those that fit, best first; then the others, by id.

    Better is what is loaded already, then what names the region, then the shell; then
    the higher version.

    :param region: None: what is sound by itself fits
    """
    fits = [_fit(image, region, largest) for image in images]
    fits.sort(key=lambda fit: fit.image.id)
    good = [fit for fit in fits if not fit.reasons]
    good.sort(key=lambda fit: _merit(fit.bitstream, region), reverse=True)
    return (*good, *(fit for fit in fits if fit.reasons))


def _fit(image: Image, region: Target | None, largest: int) -> Fit:
    wrong = bitstreams.faults(image, largest)
    if wrong:
        return Fit(image, None, wrong)
    bitstream = bitstreams.read(image, largest)
    wrong = () if region is None else misfits(bitstream, region)
    return Fit(image, bitstream, wrong)


def _merit(bitstream: Bitstream | None, region: Target | None) -> tuple[object, ...]:
    if bitstream is None:
        return ()
    return (
        region is not None and is_loaded(bitstream, region),
        bitstream.region_id is not None,
        bitstream.shell_id is not None,
        _version_order(bitstream.version),
    )


def _version_order(version: str) -> tuple[tuple[int, str], ...]:
    parts = version.split('.')
    return tuple((int(p), '') if p.isdecimal() else (-1, p) for p in parts)


def chosen(
    asked: Wanted, images: Sequence[Image], region: Target, largest: int
) -> Bitstream:
    """The one bitstream that the request means and the region takes.

    :raises BitstreamNotFound: there is none by that name or function, or several
    :raises BitstreamRefused: there is one, and it does not fit
    """
    meant = [fit for fit in ranked(images, region, largest) if _is_meant(fit, asked)]
    good = [fit for fit in meant if fit.bitstream is not None and not fit.reasons]
    if len(good) == 1 and good[0].bitstream is not None:
        return good[0].bitstream
    if len(good) > 1:
        ids = ', '.join(fit.image.id for fit in good[:_MOST_REASONS])
        reason = f'{len(good)} images fit {asked}: {ids}; name one by bitstream_id.'
        raise BitstreamNotFound(reason=reason)
    if not meant:
        raise BitstreamNotFound(reason=f'there is no {asked}.')
    if len(meant) == 1:
        refused = meant[0]
        raise BitstreamRefused(
            image=shown(refused.image.id), reason=' '.join(refused.reasons)
        )
    why = '; '.join(f'{f.image.id}: {f.reasons[0]}' for f in meant[:_MOST_REASONS])
    raise BitstreamNotFound(reason=f'of {asked} no image fits: {why}')


def _is_meant(fit: Fit, asked: Wanted) -> bool:
    """By what the image says itself, so that one with faults is found and refused."""
    said = fit.image.properties
    function = said.get('accel:function_id') or said.get('function_uuid') or ''
    mine = {
        'image_id': fit.image.id,
        'name': said.get('bs-name'),
        'function_id': normal_id(function),
        'function_name': said.get('function_name'),
    }
    asked_for = {key: getattr(asked, key) for key in mine}
    return all(value is None or mine[key] == value for key, value in asked_for.items())
