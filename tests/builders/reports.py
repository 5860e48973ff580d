# SPDX-License-Identifier: Apache-2.0
"""Host reports with cards, as drivers create them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    HandleType,
    HostReport,
)

HOST = 'compute-1'


def card(bus: int, *, handles: int = 1, serial: str | None = None) -> Device:
    """Return a card on a bus; with several handles these are virtual functions.

    :param serial: None: the card is identified by its slot
    """
    address = f'0000:{bus:02x}:00.0'
    root = Deployable(
        name=f'{HOST}_{address}',
        resource_class='PGPU' if handles == 1 else 'VGPU',
        traits=('OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8'),
        total=handles,
        handles=tuple(attach_handle(bus, number) for number in range(handles)),
        attributes={'numa': '0'},
    )
    return Device(
        type='GPU',
        vendor='10de',
        model='Tesla T4',
        driver='NVIDIA',
        control_address=address,
        hardware_id=serial or address,
        root=root,
        std_board_info={'product_id': '1eb8'},
    )


def attach_handle(bus: int, function: int) -> AttachHandle:
    device, number = divmod(function, 8)
    info = {
        'domain': '0000',
        'bus': f'{bus:02x}',
        'device': f'{device:02x}',
        'function': f'{number}',
    }
    return AttachHandle(f'0000:{bus:02x}:{device:02x}.{number}', HandleType.PCI, info)


def with_root(device: Device, **fields: Any) -> Device:
    """Return the card with other fields of its root deployable. Any: types vary."""
    return replace(device, root=replace(device.root, **fields))


def without_handles(device: Device, *keys: str) -> Device:
    """Return the card without the handles of the given keys."""
    remaining = tuple(
        handle for handle in device.root.handles if handle.key not in keys
    )
    return replace(
        device, root=replace(device.root, handles=remaining, total=len(remaining))
    )


def with_parts(device: Device, *names: str) -> Device:
    """Return the card with one child deployable per name, each with one handle."""
    parts = tuple(
        replace(
            device.root,
            name=f'{device.root.name}_{name}',
            handles=(
                AttachHandle(
                    f'{device.control_address}/{name}', HandleType.PCI, {'part': name}
                ),
            ),
            total=1,
        )
        for name in names
    )
    return replace(device, root=replace(device.root, children=parts))


def report(*devices: Device, hostname: str = HOST, boot_id: str = 'boot') -> HostReport:
    return HostReport(hostname, boot_id, tuple(devices))


def host(cards: int, handles: int) -> HostReport:
    """Return a report of cards with serial numbers."""
    return report(*list_cards(cards, handles))


def list_cards(cards: int, handles: int) -> Sequence[Device]:
    return [card(bus, handles=handles, serial=f'serial-{bus}') for bus in range(cards)]
