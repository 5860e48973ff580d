# SPDX-License-Identifier: Apache-2.0
"""FPGA card as its driver reports it, before and after programming."""

from dataclasses import replace
from typing import Final

from cyborg_lite.drivers.pci.functions import custom_name, handle_info
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    HandleType,
)
from tests.builders.bitstream_files import ARRIA10_REGION

HOST: Final = 'compute-1'
FACTORY: Final = 'd8424dc4a4a3c413f89e433683f9040b'


def function_trait(function: str) -> str:
    return custom_name('FPGA_FUNCTION_ID_INTEL', function)


def fpga_card(bus: int = 0x5E, function: str = FACTORY, regions: int = 1) -> Device:
    """Return a card that is one deployable, or has one deployable per region."""
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
        root = Deployable(name, children=parts)
    return Device(
        type='FPGA',
        vendor='8086',
        model='PAC Arria 10 GX',
        driver='intel',
        control_address=address,
        hardware_id=address,
        root=root,
    )


def holding(device: Device, part: str, function: str) -> Device:
    """Return the card with a function loaded into one of its regions."""
    return replace(
        device, root=_replace_named(device.root, device.root.name + part, function)
    )


def with_shell(device: Device, shell: str) -> Device:
    """Return the card with another shell and empty regions."""
    return replace(device, root=_empty_region(device.root, shell))


def _empty_region(deployable: Deployable, shell: str) -> Deployable:
    parts = tuple(_empty_region(part, shell) for part in deployable.children)
    attributes = {**deployable.attributes, bitstreams.SHELL: shell}
    attributes.pop(bitstreams.FUNCTION, None)
    traits = tuple(trait for trait in deployable.traits if 'FUNCTION_ID' not in trait)
    return replace(deployable, children=parts, traits=traits, attributes=attributes)


def _replace_named(deployable: Deployable, name: str, function: str) -> Deployable:
    if deployable.name == name:
        key = deployable.handles[0].key
        return replace(_region(name, key, function), children=deployable.children)
    parts = tuple(_replace_named(part, name, function) for part in deployable.children)
    return replace(deployable, children=parts)


def _region(name: str, address: str, function: str) -> Deployable:
    return Deployable(
        name=name,
        resource_class='FPGA',
        traits=('OWNER_CYBORG', 'CUSTOM_FPGA_INTEL', function_trait(function)),
        total=1,
        handles=(
            AttachHandle(
                address, HandleType.PCI, handle_info(address), needs_host=True
            ),
        ),
        attributes={
            bitstreams.VENDOR: '8086 intel',
            bitstreams.BOARD: 'PAC_ARRIA10 09c4',
            bitstreams.VERSION: '1.1.3',
            bitstreams.SHELL: f'113000200000177 {ARRIA10_REGION}',
            bitstreams.REGION: ARRIA10_REGION,
            bitstreams.FUNCTION: function,
        },
    )
