# SPDX-License-Identifier: Apache-2.0
"""Owner of a device, and the configuration that gives it to another service."""

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OwnedDevice:
    """A reported device, and the other service that manages it."""

    hostname: str
    address: str
    vendor: str  # for PCI devices four hex digits, like the product
    product: str
    model: str
    driver: str
    conflict: str  # empty: no other service
    schedulable: bool  # False: its driver does not offer it
    reason: str  # of the health
    resource_classes: tuple[str, ...] = ()

    @property
    def has_vgpus(self) -> bool:
        """Check whether this service divides the card into vGPUs."""
        return any('VGPU' in name for name in self.resource_classes)

    @property
    def ids(self) -> str:
        """Vendor and product, as ``vendor:product``."""
        return f'{self.vendor}:{self.product}'

    @property
    def owner(self) -> str:
        """The owner as shown to operators."""
        if self.conflict:
            return 'both'
        return 'this service' if self.schedulable else 'nobody'

    @property
    def owner_reason(self) -> str:
        """Reason for a conflict, or why the device is not offered."""
        return self.conflict or ('' if self.schedulable else self.reason)


def config_lines_for_nova(device: OwnedDevice) -> tuple[tuple[str, str], ...]:
    """Return the lines that give the device to Nova only, by file."""
    exclusion = 'cyborg-lite.conf', f'[agent] excluded_devices = {device.address}'
    if device.has_vgpus:
        return (*_vgpu_lines_for_nova(device), exclusion)
    spec = {'address': device.address}
    ids = {'vendor_id': device.vendor, 'product_id': device.product}
    alias = {**ids, 'name': f'{device.vendor}-{device.product}'}
    return (
        ('nova.conf', f'[pci] device_spec = {json.dumps(spec)}'),
        ('nova.conf', f'[pci] alias = {json.dumps(alias)}'),
        exclusion,
    )


def _vgpu_lines_for_nova(device: OwnedDevice) -> tuple[tuple[str, str], ...]:
    """Return the lines with which Nova divides the card. TYPE is the vGPU type.

    A class of its own separates the vGPUs of Nova from those of this service.
    """
    return (
        ('nova.conf', '[devices] enabled_mdev_types = TYPE'),
        ('nova.conf', f'[mdev_TYPE] device_addresses = {device.address}'),
        ('nova.conf', '[mdev_TYPE] mdev_class = CUSTOM_NOVA_VGPU'),
        ('flavors of Nova', 'resources:CUSTOM_NOVA_VGPU=1'),
        ('flavors of Nova', 'trait:OWNER_CYBORG=forbidden'),
    )


def config_lines_for_cyborg(device: OwnedDevice) -> tuple[tuple[str, str], ...]:
    """Return the settings that give the device to this service, by file."""
    lines = (
        ('nova.conf', f'no [pci] device_spec that fits {device.address}'),
        ('nova.conf', 'no [devices] enabled_mdev_types that the card can carry'),
        ('cyborg-lite.conf', f'no {device.address} in [agent] excluded_devices'),
    )
    if not device.has_vgpus:
        return lines
    own_class = 'vgpu_resource_class = CUSTOM_CYBORG_VGPU, if Nova has vGPUs as well'
    return (*lines, ('cyborg-lite.conf', f'[nvidia_gpu_driver] {own_class}'))
