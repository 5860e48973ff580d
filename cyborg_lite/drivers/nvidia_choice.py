# SPDX-License-Identifier: Apache-2.0
"""Which vGPU types a card is offered with: what is wanted, as far as it can be had."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cyborg_lite.drivers.held import Held
from cyborg_lite.drivers.nvidia_carving import Carving, Vgpu, Way
from cyborg_lite.drivers.nvidia_types import VgpuType


@dataclass(frozen=True, slots=True)
class Choice:
    types: tuple[VgpuType, ...] = ()  # none: nothing is offered
    reason: str = ''  # why not what is wanted
    strangers: tuple[Vgpu, ...] = ()
    closed: bool = False  # strangers leave no room: the capacity is kept, reserved


def choose(found: Carving, wanted: Sequence[str], held: Held) -> Choice:
    """``wanted`` is as an operator writes types; none: the card shall be whole."""
    ours = [vgpu for vgpu in found.existing if held.has(vgpu)]
    strangers = tuple(vgpu for vgpu in found.existing if not held.has(vgpu))
    running = _types_of(found, ours)
    if not wanted:
        if not running:
            return Choice(reason=str(found), strangers=strangers)
        note = _refusal('To be whole again', ours, running)
        return Choice(running, note, strangers)
    types, missing = _meant(found, wanted)
    if missing:
        if not running:
            return Choice(reason=missing, strangers=strangers)
        return Choice(running, missing, strangers)
    kept = tuple(each for each in running if each.label not in _labels(types))
    if kept:
        # Types in GPU instances leave one another alone; all others exclude each other.
        both = _all_on_instances((*types, *kept))
        note = _refusal(f'The change to {_names(types)}', ours, kept)
        return Choice((*types, *kept) if both else kept, note, strangers)
    return _beside(found, types, strangers)


def _beside(
    found: Carving, types: tuple[VgpuType, ...], strangers: tuple[Vgpu, ...]
) -> Choice:
    """The types that are wanted, with those in mind that somebody else made."""
    others = [each for each in _types_of(found, strangers) if each not in types]
    if others and not _all_on_instances((*types, *others)):
        made = sum(vgpu.type_id in {each.id for each in others} for vgpu in strangers)
        reason = (
            f'in use by something that is not us: {made} vGPUs of {_names(others)}, '
            f'beside which there can be none of {_names(types)}'
        )
        return Choice(types, reason, strangers, closed=True)
    if not found.existing and not any(each.creatable for each in types):
        made_of = 'the GPU instances (MIG) for it do not exist'
        if not _all_on_instances(types):
            made_of = 'the driver offers none of it on an empty card; MIG may be on'
        return Choice(reason=f'no {_names(types)} can be made: {made_of}')
    return Choice(types, '; '.join(_remarks(found, strangers)), strangers)


def _remarks(found: Carving, strangers: Sequence[Vgpu]) -> Iterator[str]:
    """What keeps some of the capacity from being given to anybody."""
    if strangers:
        yield f'not made by this service: {_listed(strangers)}'
    if found.unusable:
        yield f'no vGPU can be made of {", ".join(found.unusable)}'


def _meant(found: Carving, wanted: Sequence[str]) -> tuple[tuple[VgpuType, ...], str]:
    """The types, or why there are none."""
    types = []
    for text in wanted:
        each = found.meant(text) or _by_name(found, text)
        if each is None:
            known = ', '.join(f'{one.id} ({one.name})' for one in found.types) or 'none'
            return (), f'the card has no vGPU type {text}; it has: {known}'
        types.append(each)
    if len(types) > 1 and not _all_on_instances(types):
        return (), f'one card runs one of {_names(types)} at a time: configure one'
    return tuple(types), ''


def _by_name(found: Carving, text: str) -> VgpuType | None:
    """A type that the card cannot list now, by a name that tells its size.

    Without virtual functions there is no list, and a full card lists nothing.
    """
    shrunk = found.way is Way.VENDOR_VFIO and found.existing
    named = VgpuType('', text, available=0)
    return named if shrunk and named.memory else None


def _types_of(found: Carving, vgpus: Iterable[Vgpu]) -> tuple[VgpuType, ...]:
    types = {found.type_of(vgpu): None for vgpu in vgpus}
    return tuple(each for each in types if each is not None)


def _refusal(change: str, ours: Sequence[Vgpu], running: Sequence[VgpuType]) -> str:
    ids = {each.id for each in running}
    count = sum(vgpu.type_id in ids for vgpu in ours)
    return f'{change} is refused while {count} vGPUs of {_names(running)} are in use'


def _all_on_instances(types: Iterable[VgpuType]) -> bool:
    return all(each.on_instance for each in types)


def _labels(types: Iterable[VgpuType]) -> set[str]:
    return {each.label for each in types}


def _names(types: Iterable[VgpuType]) -> str:
    return ' and '.join(each.label for each in types)


def _listed(vgpus: Iterable[Vgpu]) -> str:
    return ', '.join(vgpu.uuid or vgpu.address for vgpu in vgpus)
