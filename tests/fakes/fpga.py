# SPDX-License-Identifier: Apache-2.0
"""An FPGA card as its driver would report it, before and after it was loaded."""

from dataclasses import replace
from typing import Final

from cyborg_lite.drivers.pci import custom_name, handle_info
from cyborg_lite.model import bitstreams
from cyborg_lite.model.inventory import Deployable, Device, HandleType, Unit
from tests.fakes.bitstream_files import ARRIA10_REGION

HOST: Final = 'compute-1'
FACTORY: Final = 'd8424dc4a4a3c413f89e433683f9040b'


def function_trait(function: str) -> str:
    return custom_name('FPGA_FUNCTION_ID_INTEL', function)


def fpga_card(bus: int = 0x5E, function: str = FACTORY, regions: int = 1) -> Device:
    """A card that is given away whole, or region by region."""
    address = f'0000:{bus:02x}:00.0'
    name = f'{HOST}_{address}'
    if regions == 1:
        root = _region(name, address, function)
    else:
        parts = tuple(
            _region(
                f'{name}_region{number}', f'0000:{bus:02x}:00.{number + 1}', function
            )
            for number in range(regions)
        )
        root = Deployable(name, parts=parts)
    return Device(
        type='FPGA',
        vendor='8086',
        model='PAC Arria 10 GX',
        driver='intel',
        address=address,
        hardware_id=address,
        root=root,
    )


def holding(device: Device, part: str, function: str) -> Device:
    """The card once that function is in one of its regions."""
    return replace(
        device, root=_changed(device.root, device.root.name + part, function)
    )


def with_shell(device: Device, shell: str) -> Device:
    """The card once it has another shell, and nothing in any region."""
    return replace(device, root=_emptied(device.root, shell))


def _emptied(deployable: Deployable, shell: str) -> Deployable:
    parts = tuple(_emptied(part, shell) for part in deployable.parts)
    said = {**deployable.attributes, bitstreams.SHELL: shell}
    said.pop(bitstreams.FUNCTION, None)
    traits = tuple(each for each in deployable.traits if 'FUNCTION_ID' not in each)
    return replace(deployable, parts=parts, traits=traits, attributes=said)


def _changed(deployable: Deployable, name: str, function: str) -> Deployable:
    if deployable.name == name:
        key = deployable.units[0].key
        return replace(_region(name, key, function), parts=deployable.parts)
    parts = tuple(_changed(part, name, function) for part in deployable.parts)
    return replace(deployable, parts=parts)


def _region(name: str, address: str, function: str) -> Deployable:
    return Deployable(
        name=name,
        resource_class='FPGA',
        traits=('OWNER_CYBORG', 'CUSTOM_FPGA_INTEL', function_trait(function)),
        total=1,
        units=(Unit(address, HandleType.PCI, handle_info(address), needs_host=True),),
        attributes={
            bitstreams.VENDOR: '8086 intel',
            bitstreams.BOARD: 'PAC_ARRIA10 09c4',
            bitstreams.VERSION: '1.1.3',
            bitstreams.SHELL: f'113000200000177 {ARRIA10_REGION}',
            bitstreams.REGION: ARRIA10_REGION,
            bitstreams.FUNCTION: function,
        },
    )
