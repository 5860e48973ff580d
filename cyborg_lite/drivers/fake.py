# SPDX-License-Identifier: Apache-2.0
"""An FPGA that does not exist, for trying things out: the worked example of a driver.

Copy this file to start a driver for something that is not a PCI function; for what is
one, ``PciDriver`` in ``pci.py`` does most of the work.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Deployable, Device, Finding, HandleType, Unit

# In a domain that no host has, so that it is never taken for a real function.
_DOMAIN: Final = 'fa4e'
_ADDRESS: Final = f'{_DOMAIN}:0c:00.0'
_UNITS: Final = 16
_TRAITS: Final = ('CUSTOM_FAKE_DEVICE', 'OWNER_CYBORG')


class FakeDriver:
    """One board with sixteen units, which Nova ignores because of their type."""

    NAME: ClassVar[str] = 'fake_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host

    def discover(self) -> Iterator[Finding]:
        root = Deployable(
            name=f'{self._host.name}_FakeDevice',
            resource_class='FPGA',
            traits=_TRAITS,
            total=_UNITS,
            units=tuple(_unit(slot) for slot in range(_UNITS)),
            attributes={'rc': 'FPGA', 'traits1': _TRAITS[0], 'traits2': _TRAITS[1]},
        )
        device = Device(
            type='FPGA',
            vendor='0xABCD',
            model='FakeDevice',
            driver='fake',
            address=_ADDRESS,
            hardware_id=_ADDRESS,
            root=root,
            std_board_info={'device_id': '0xabcd', 'class': 'Fake class'},
            vendor_board_info='fake_vendor_info',
        )
        yield Finding(_ADDRESS, 'abcd:abcd', '', self.NAME, 'exists only here', device)


def _unit(slot: int) -> Unit:
    where = {'domain': _DOMAIN, 'bus': '0c', 'device': f'{slot:02x}', 'function': '0'}
    return Unit(f'{_DOMAIN}:0c:{slot:02x}.0', HandleType.TEST_PCI, where)
