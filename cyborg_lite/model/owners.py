# SPDX-License-Identifier: Apache-2.0
"""Which service a device belongs to, and how an operator gives it to the other."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OwnedDevice:
    """A device that an agent reports, and who else manages it."""

    hostname: str
    address: str
    vendor: str  # four hex digits where it is a PCI device, as the next
    product: str
    model: str
    driver: str
    conflict: str  # empty: nobody else
    schedulable: bool  # False: its driver withholds it
    reason: str  # of its health

    @property
    def owner(self) -> str:
        if self.conflict:
            return 'both'
        return 'this service' if self.schedulable else 'nobody'

    @property
    def why(self) -> str:
        return self.conflict or ('' if self.schedulable else self.reason)


def lines_for_nova(device: OwnedDevice) -> tuple[tuple[str, str], ...]:
    """To give it to Nova alone: by file, the lines that it needs."""
    spec = {'address': device.address}
    ids = {'vendor_id': device.vendor, 'product_id': device.product}
    alias = {**ids, 'name': f'{device.vendor}-{device.product}'}
    return (
        ('nova.conf', f'[pci] device_spec = {json.dumps(spec)}'),
        ('nova.conf', f'[pci] alias = {json.dumps(alias)}'),
        ('cyborg-lite.conf', f'[agent] excluded_devices = {device.address}'),
    )


def lines_for_us(device: OwnedDevice) -> tuple[tuple[str, str], ...]:
    """To give it to this service alone: by file, what must not stand there."""
    return (
        ('nova.conf', f'no [pci] device_spec that fits {device.address}'),
        ('nova.conf', 'no [devices] enabled_mdev_types that the card can carry'),
        ('cyborg-lite.conf', f'no {device.address} in [agent] excluded_devices'),
    )
