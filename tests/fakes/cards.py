# SPDX-License-Identifier: Apache-2.0
"""Cards and hosts, as drivers would report them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cyborg_lite.model.inventory import (
    Deployable,
    Device,
    HandleType,
    HostReport,
    Unit,
)

HOST = 'compute-1'


def card(bus: int, *, units: int = 1, serial: str | None = None) -> Device:
    """A card on that bus; with more than one unit these are virtual functions.

    ``serial`` None: it has none, and is known by its slot.
    """
    address = f'0000:{bus:02x}:00.0'
    root = Deployable(
        name=f'{HOST}_{address}',
        resource_class='PGPU' if units == 1 else 'VGPU',
        traits=('OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8'),
        total=units,
        units=tuple(unit(bus, number) for number in range(units)),
        attributes={'numa': '0'},
    )
    return Device(
        type='GPU',
        vendor='10de',
        model='Tesla T4',
        driver='NVIDIA',
        address=address,
        hardware_id=serial or address,
        root=root,
        std_board_info={'product_id': '1eb8'},
    )


def unit(bus: int, function: int) -> Unit:
    device, number = divmod(function, 8)
    info = {
        'domain': '0000',
        'bus': f'{bus:02x}',
        'device': f'{device:02x}',
        'function': f'{number}',
    }
    return Unit(f'0000:{bus:02x}:{device:02x}.{number}', HandleType.PCI, info)


def with_root(device: Device, **fields: Any) -> Device:
    """The card with another root deployable; Any: fields of that."""
    return replace(device, root=replace(device.root, **fields))


def without_units(device: Device, *keys: str) -> Device:
    """The card when those units are not there any more."""
    left = tuple(each for each in device.root.units if each.key not in keys)
    return replace(device, root=replace(device.root, units=left, total=len(left)))


def with_parts(device: Device, *names: str) -> Device:
    """The card with a part of each name below its root, of one unit each."""
    parts = tuple(
        replace(
            device.root,
            name=f'{device.root.name}_{name}',
            units=(Unit(f'{device.address}/{name}', HandleType.PCI, {'part': name}),),
            total=1,
        )
        for name in names
    )
    return replace(device, root=replace(device.root, parts=parts))


def report(*devices: Device, hostname: str = HOST, boot_id: str = 'boot') -> HostReport:
    return HostReport(hostname, boot_id, tuple(devices))


def host(cards: int, units: int) -> HostReport:
    """That many cards of that many units each, with serial numbers."""
    return report(*numbered(cards, units))


def numbered(cards: int, units: int) -> Sequence[Device]:
    return [card(bus, units=units, serial=f'serial-{bus}') for bus in range(cards)]
