# SPDX-License-Identifier: Apache-2.0
"""Layouts of GPU instances (MIG), which are modes of a card.

A layout such as ``3g.20gb+2x1g.5gb`` names profiles of the MIG user guide of NVIDIA.
MIG mode must be possible on the card; the agent turns it on with the first layout. A
card in the mode ``elastic`` has no layout: each vGPU gets its own instance, see
``carving.py``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.nvidia.capacity import instance_depth, list_gpu_instances
from cyborg_lite.drivers.nvidia.carving import NVIDIA_SMI
from cyborg_lite.drivers.nvidia.layout import (
    VgpuLayout,
    VgpuType,
    read_layout,
    share_instances,
)
from cyborg_lite.drivers.nvidia.models import (
    EIGHTHS,
    PROFILES,
    SLICES,
    Profile,
    sort_profiles,
)
from cyborg_lite.drivers.nvidia.nvml import Nvml
from cyborg_lite.drivers.nvidia.offer import VENDOR_DRIVER, VgpuOffer
from cyborg_lite.drivers.nvidia.selection import list_traits
from cyborg_lite.drivers.pci.card_modes import CardModes, DeclaredModes
from cyborg_lite.errors.drivers import DeviceBusy
from cyborg_lite.model.devices.modes import OfferedInventory
from cyborg_lite.model.inventory.host_report import Device

ELASTIC: Final = 'elastic'
"""The mode of a card whose GPU instances are made for each vGPU."""

# A profile ends in its attributes: with media engines, with all, without any, graphics.
_INSTANCE: Final = re.compile(
    r'(?:([2-7])x)?([1-7]g\.\d{1,3}gb)((?:\+me|\+me\.all|-me|\+gfx)?)'
)
_SEPARATOR: Final = re.compile(r'\+(?=(?:\dx)?\dg\.)')
_WITH_MEDIA: Final = ('+me', '+me.all')  # one instance of a card can have them


def parse_layout(profiles: Iterable[Profile], name: str) -> tuple[Profile, ...]:
    """Return the GPU instances of a layout, largest first.

    :returns: empty if the layout is malformed or does not fit on the card
    """
    by_name = {profile.name: profile for profile in profiles}
    instances: list[Profile] = []
    for instance in _SEPARATOR.split(name):
        match = _INSTANCE.fullmatch(instance)
        if match is None or match[2] not in by_name:
            return ()
        profile = replace(by_name[match[2]], name=match[2] + match[3])
        instances += [profile] * int(match[1] or 1)
    fits = (
        sum(item.slices for item in instances) <= SLICES
        and sum(item.eighths for item in instances) <= EIGHTHS
        and sum(item.name.endswith(_WITH_MEDIA) for item in instances) <= 1
    )
    return sort_profiles(instances) if fits else ()


def format_layout(instances: Sequence[Profile]) -> str:
    """Return the name of a layout whose instances are in order."""
    counts = Counter(item.name for item in instances)
    return '+'.join(
        f'{number}x{name}' if number > 1 else name for name, number in counts.items()
    )


def list_layouts(profiles: Sequence[Profile], declared: Iterable[str]) -> list[str]:
    """Return the declared layouts that fit, and those of equal instances."""
    names = []
    for name in declared:
        instances = parse_layout(profiles, name)
        if instances:
            names.append(format_layout(instances))
    for profile in profiles:
        names.append(format_layout([profile] * profile.maximum))
    return list(dict.fromkeys(names))


class MigModes(CardModes):
    """Layouts of the GPU instances of divided cards, set with ``nvidia-smi``."""

    def __init__(
        self, offer: VgpuOffer, writer: Writer, nvml: Nvml, declared: DeclaredModes
    ) -> None:
        self._offer = offer
        self._writer = writer
        self._nvml = nvml
        self._declared = declared

    def list_inventory(
        self, card: PciFunction, device: Device
    ) -> Mapping[str, Iterable[OfferedInventory]]:
        profiles = PROFILES.get(card.device, ())
        if card.driver != VENDOR_DRIVER or not self._offer.find_configured(card):
            return {}
        names = list_layouts(profiles, self._declared.list_names())
        guess = _guess_layout(card, profiles)
        if guess and not any(self.has_mode(card, name) for name in names):
            names.append(guess)
        # A layout of vGPUs is thousands of files: it is read once.
        vgpus = read_layout(card)
        layouts = {name: parse_layout(profiles, name) for name in names}
        if self._offer.list_elastic_sizes(card):
            # All that an empty card offers, although not at once.
            layouts[ELASTIC] = tuple(p for p in profiles for _ in range(p.maximum))
        return {
            name: self._predict(card, vgpus, instances)
            for name, instances in layouts.items()
        }

    def has_mode(self, card: PciFunction, mode: str) -> bool:
        """Return True if a card may have a layout.

        Profiles of three and of four slices have the same places.
        """
        if self._offer.elastic.has(card.address) or mode == ELASTIC:
            return mode == ELASTIC and self._offer.elastic.has(card.address)
        instances = parse_layout(PROFILES.get(card.device, ()), mode)
        depths = [instance_depth(place) for place in _list_places(card)]
        expected = [item.depth for item in instances]
        return bool(instances) and sorted(depths) == sorted(expected)

    def is_possible(self, card: PciFunction, device: Device, mode: str) -> bool:
        if mode == ELASTIC:
            is_possible = bool(self._offer.list_elastic_sizes(card))
        else:
            is_possible = bool(parse_layout(PROFILES.get(card.device, ()), mode))
        return card.driver == VENDOR_DRIVER and is_possible

    def complete_name(self, device: Device, mode: str) -> str:
        """Return a layout with its profiles in order."""
        product = device.std_board_info.get('product_id', '')
        return format_layout(parse_layout(PROFILES.get(product, ()), mode)) or mode

    def set_mode(self, card: PciFunction, mode: str) -> None:
        """Replace the GPU instances of a card without vGPUs.

        An elastic card has none until a vGPU needs one.
        """
        if read_layout(card).existing:
            raise DeviceBusy(address=card.address, reason='it has vGPUs')
        address, target = card.address, ('-i', card.address)
        run = partial(self._writer.run_or_raise, address, NVIDIA_SMI)
        with self._nvml.keep_closed():
            if _list_places(card):
                # This fails if there are no compute instances, as on most hosts.
                self._writer.run(address, NVIDIA_SMI, 'mig', *target, '-dci')
                run('mig', *target, '-dgi')
            else:
                run(*target, '-mig', '1')
            for item in parse_layout(PROFILES.get(card.device, ()), mode):
                run('mig', *target, '-cgi', item.name)
        if mode == ELASTIC:
            self._offer.elastic.add(address)
        else:
            self._offer.elastic.remove(address)

    def _predict(
        self, card: PciFunction, vgpus: VgpuLayout, instances: Sequence[Profile]
    ) -> Iterator[OfferedInventory]:
        """Yield what a card offers with a layout of GPU instances."""
        fabric = self._offer.list_fabric_traits(card)
        for text in self._offer.find_configured(card):
            listed = vgpus.find_type(text) or VgpuType('', text, available=0)
            (vgpu_type,) = share_instances(card.device, [listed])
            names = [re.sub(r'-me|\+gfx', '', item.name) for item in instances]
            total = names.count(vgpu_type.mig_profile) * vgpu_type.per_instance
            if total:
                traits = (*list_traits(card.device, vgpu_type), *fabric)
                resource_class = self._offer.resource_class
                yield OfferedInventory(resource_class, total, tuple(sorted(traits)))


def _list_places(card: PciFunction) -> tuple[int, ...]:
    return list_gpu_instances(card.host, card.address)


def _guess_layout(card: PciFunction, profiles: Sequence[Profile]) -> str:
    """Return a layout that a card may have; empty without GPU instances.

    The host shows the level of a GPU instance in the tree of places, but not its
    profile. Of the profiles of the level, the one with the fewest slices is taken,
    but with more than one: 3g.20gb rather than 4g.20gb, 2g.10gb than 1g.10gb.
    """
    by_depth: dict[int, Profile] = {}
    for profile in profiles:  # largest first
        choice = by_depth.setdefault(profile.depth, profile)
        if choice.slices > profile.slices > 1:
            by_depth[profile.depth] = profile
    depths = sorted(map(instance_depth, _list_places(card)))
    names = [by_depth[depth].name for depth in depths]
    return format_layout(parse_layout(profiles, '+'.join(names)))
