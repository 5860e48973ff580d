# SPDX-License-Identifier: Apache-2.0
"""Addresses of the functions that the topology of a bitstream describes.

``pci_offset`` counts from function 0 of the slot of the card. Any user may upload an
image. An address is therefore used only if the host has the function after the load.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.functions import handle_address, handle_info
from cyborg_lite.model.bitstreams import function_layout
from cyborg_lite.model.inventory.host_report import AttachHandle, Deployable, HandleType


@dataclass(frozen=True, slots=True)
class LocatedTopology:
    """Deployables of the functions of a bitstream, and functions that are missing."""

    deployables: tuple[Deployable, ...]
    missing: tuple[str, ...] = ()  # one sentence each


def locate_functions(
    host: Host, control_address: str, functions: tuple[Deployable, ...]
) -> LocatedTopology:
    """Add the attribute ``address`` to the functions that exist on the host.

    :param control_address: of the card
    """
    missing: list[str] = []
    located = tuple(
        _locate_function(host, control_address, function, missing)
        for function in functions
    )
    return LocatedTopology(located, tuple(missing))


def _locate_function(
    host: Host, control_address: str, item: Deployable, missing: list[str]
) -> Deployable:
    children = tuple(
        _locate_function(host, control_address, child, missing)
        for child in item.children
    )
    address = function_layout.find_function_address(control_address, item.attributes)
    if address is None:
        return replace(item, children=children)
    if not PciFunction(host, address).is_present:
        name = item.name.rpartition('_')[0].rpartition('_')[2]
        number = item.name.rpartition('_')[2]
        missing.append(f'The host has no function {address} ({name}_{number}).')
        return replace(item, children=children)
    attributes = {**item.attributes, 'address': address}
    return replace(item, attributes=attributes, children=children)


def select_guest_function(
    host: Host, region: Deployable, control_address: str, located: LocatedTopology
) -> Deployable:
    """Return a region whose attach handle is the only function of its bitstream.

    The handle stays as the driver reports it if the bitstream has several functions,
    or if a guest must not have the function.
    """
    addresses = [*_list_addresses(located.deployables)]
    if len(addresses) != 1 or len(region.handles) != 1 or located.missing:
        return region
    (handle,), (address,) = region.handles, addresses
    if not _is_safe(host, handle, control_address, address):
        return region
    info = {**handle.info, **handle_info(address)}
    return replace(region, handles=(replace(handle, info=info),))


def _list_addresses(functions: tuple[Deployable, ...]) -> Iterator[str]:
    for function in functions:
        for item in function.walk():
            if 'address' in item.attributes:
                yield item.attributes['address']


def _is_safe(
    host: Host, handle: AttachHandle, control_address: str, address: str
) -> bool:
    """Check that a guest may have a function instead of the one of the driver.

    It is no management function, is of the same vendor, is alone in its IOMMU group
    and can be reset.
    """
    if handle.type is not HandleType.PCI or address == control_address:
        return False
    function = PciFunction(host, address)
    current = PciFunction(host, handle_address(handle.info))
    return (
        function.vendor == current.vendor
        and function.group_members == (address,)
        and function.is_resettable
    )
