# SPDX-License-Identifier: Apache-2.0
"""Devices of a guest, as the libvirt driver of Nova 34 derives them from ARQs.

It follows ``_allocate_cyborg_mdevs``, ``_guest_add_accel_pci_devices`` and
``_start_inactive_mediated_devices`` of Nova. The suite with a real Nova asserts the
same.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.hosts.kernel import FakeKernel

_MDEVS: Final = 'sys/bus/mdev/devices'
_ADDRESS: Final = '{domain}:{bus}:{device}.{function}'


@dataclass(frozen=True, order=True)
class HostDevice:
    """Device of the host in the XML of a guest."""

    kind: str  # mdev, pci
    source: str  # uuid of an mdev, address of a PCI function
    managed: str | None = None  # None: not of a PCI function


def read_address(attributes: Mapping[str, str]) -> str:
    """Return the PCI address in the XML of a guest, as sysfs writes it."""
    domain, bus, slot, function = (
        int(attributes[name], 16) for name in ('domain', 'bus', 'slot', 'function')
    )
    return f'{domain:04x}:{bus:02x}:{slot:02x}.{function}'


class NovaHost:
    """Nova with its libvirt driver on a host with an emulated kernel."""

    def __init__(self, kernel: FakeKernel) -> None:
        self._kernel = kernel

    # Any: JSON of the API.
    def define_guest(self, arqs: Sequence[Mapping[str, Any]]) -> list[HostDevice]:
        """Return the devices of the guest. Nova creates mdevs that do not exist.

        :raises OSError: the kernel refuses to create an mdev
        """
        mdevs = [arq for arq in arqs if arq['attach_handle_type'] == 'MDEV']
        functions = [arq for arq in arqs if arq['attach_handle_type'] == 'PCI']
        for arq in mdevs:
            self._require_mdev(arq['attach_handle_uuid'], arq['attach_handle_info'])
        return [
            *(HostDevice('mdev', arq['attach_handle_uuid']) for arq in mdevs),
            # Nova does not read the key managed.
            *(
                HostDevice('pci', _ADDRESS.format(**arq['attach_handle_info']), 'yes')
                for arq in functions
            ),
        ]

    def start_compute(self) -> None:
        """Create the mdevs that are only defined, as at the start of nova-compute.

        :raises OSError: the kernel refuses one of them, and nova-compute exits
        """
        for path in (self._kernel.root / 'etc/mdevctl.d').glob('*/*'):
            if not (self._kernel.root / _MDEVS / path.name).exists():
                mdev_type = json.loads(path.read_text())['mdev_type']
                self._create(path.name, path.parent.name, mdev_type)

    def _require_mdev(self, uuid: str, info: Mapping[str, str]) -> None:
        if (self._kernel.root / _MDEVS / uuid).exists():
            return
        address = _ADDRESS.format(**info)
        self._create(uuid, address, info['asked_type'])
        self._kernel.define(address, uuid, info['asked_type'])

    def _create(self, uuid: str, address: str, mdev_type: str) -> None:
        types = f'sys/bus/pci/devices/{address}/mdev_supported_types'
        self._kernel.write(self._kernel.root, f'{types}/{mdev_type}/create', uuid)
