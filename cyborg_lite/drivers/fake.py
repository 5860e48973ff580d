# SPDX-License-Identifier: Apache-2.0
"""An emulated FPGA for tests and demonstrations: the worked example of a driver.

Copy this file to start a driver for a device that is not a PCI function. For a PCI
function, derive from ``PciDriver`` in ``pci/driver.py``, which does most of the work.
"""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)
from cyborg_lite.model.inventory.typed_attributes import AttributeDeclaration
from cyborg_lite.model.traits import OWNER_CYBORG

# A PCI domain that no host has: the address cannot be mistaken for a real function.
_DOMAIN: Final = 'fa4e'
_ADDRESS: Final = f'{_DOMAIN}:0c:00.0'
_HANDLE_COUNT: Final = 16
_MEMORY: Final = 1024  # MiB
_TRAITS: Final = ('CUSTOM_FAKE_DEVICE', OWNER_CYBORG)


class FakeDriver:
    """A board with sixteen handles of type TEST_PCI, which Nova does not attach."""

    NAME: ClassVar[str] = 'fake_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()
    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        typed_attributes.ARCHITECTURE,
        typed_attributes.MEMORY,
    )

    def __init__(self, host: Host, options: Options) -> None:
        self._host = host

    def discover(self) -> Iterator[DiscoveryResult]:
        """Yield the board. It is the same at every scan."""
        root = Deployable(
            name=f'{self._host.name}_FakeDevice',
            resource_class='FPGA',
            traits=_TRAITS,
            total=_HANDLE_COUNT,
            handles=tuple(_build_handle(slot) for slot in range(_HANDLE_COUNT)),
            attributes={'rc': 'FPGA', 'traits1': _TRAITS[0], 'traits2': _TRAITS[1]},
            typed_attributes=(
                typed_attributes.ARCHITECTURE.of('fake'),
                typed_attributes.MEMORY.of(_MEMORY),
            ),
        )
        device = Device(
            type='FPGA',
            vendor='0xABCD',
            model='FakeDevice',
            driver='fake',
            control_address=_ADDRESS,
            hardware_id=_ADDRESS,
            root=root,
            std_board_info={'device_id': '0xabcd', 'class': 'Fake class'},
            vendor_board_info='fake_vendor_info',
        )
        reason = 'emulated device'
        yield DiscoveryResult(_ADDRESS, 'abcd:abcd', '', self.NAME, reason, device)


def _build_handle(slot: int) -> AttachHandle:
    info = {'domain': _DOMAIN, 'bus': '0c', 'device': f'{slot:02x}', 'function': '0'}
    return AttachHandle(f'{_DOMAIN}:0c:{slot:02x}.0', HandleType.TEST_PCI, info)
