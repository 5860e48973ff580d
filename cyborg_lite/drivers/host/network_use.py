# SPDX-License-Identifier: Apache-2.0
"""Use of a PCI function by the network of the host.

The names are those of the kernel (kernel: ABI/testing/sysfs-class-net, net/core/dev.c).
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from cyborg_lite.drivers.host.sysfs import Host, PciFunction

_NETWORK_CLASSES: Final = ('0200', '0280')
_INFINIBAND: Final = '0207'
# Boards with B200 and B300 have the switches behind ConnectX-7 (Fabric Manager guide).
_SWITCH_PORT: Final = '15b3:1021'
_SWITCH_MANAGEMENT: Final = b'SMDL=SW_MNG'
_HGX_CARDS: Final = tuple(f'10de:{card}' for card in ('2901', '2909', '2920', '3182'))
_VDPA: Final = re.compile(r'vdpa\d+')
_UPPER: Final = 'upper_'
_IPV4_ROUTES: Final = 'proc/net/route'
_IPV6_ROUTES: Final = 'proc/net/ipv6_route'
# Every IPv6 interface has routes for link-local and multicast addresses.
_AUTOMATIC_ROUTES: Final = ('fe8', 'ff')


def find_network_user(function: PciFunction, routed: Collection[str]) -> str | None:
    """Return what of the network of the host uses a function, or None.

    A network interface of a virtual function that is only up does not count: hosts
    bring up every interface that they detect.

    :param routed: interfaces with routes, as ``list_routed`` returns them
    """
    vdpa = next(filter(_VDPA.fullmatch, function.names()), None)
    if vdpa is not None:
        # Only vhost_vdpa gives it to guests (kernel: ABI/testing/sysfs-bus-vdpa).
        driver = function.host.target(f'sys/bus/vdpa/devices/{vdpa}/driver')
        suffix = f'of type {driver}' if driver else 'without a driver'
        return f'it has the vDPA device {vdpa} {suffix}'
    names = list_interfaces(function)
    user = _find_switches(function) or _find_interface_user(function, names, routed)
    if user is not None:
        return user
    is_network = function.pci_class.startswith(_NETWORK_CLASSES)
    if is_network and function.has_host_driver and not names:
        return f'bound to {function.driver}, and no network interface is visible'
    for name in () if function.is_virtual else names:
        if function.text(f'net/{name}/operstate') == 'up':
            return f'its interface {name} is up'
    return None


def _find_switches(function: PciFunction) -> str | None:
    """Return that Fabric Manager needs a function to manage NVSwitches, or None."""
    is_infiniband = function.pci_class.startswith(_INFINIBAND)
    if function.ids != _SWITCH_PORT or not is_infiniband:
        return None
    vpd = function.host.raw(function.path('vpd'))
    if _SWITCH_MANAGEMENT in (vpd or b''):
        return 'it manages the NVSwitches of the board (VPD: SMDL=SW_MNG)'
    if not vpd and any(
        card.ids in _HGX_CARDS for card in function.host.pci_functions()
    ):
        return 'it may manage the NVSwitches of the board: its VPD cannot be read'
    return None


def _find_interface_user(
    function: PciFunction, names: Collection[str], routed: Collection[str]
) -> str | None:
    for path in (_IPV4_ROUTES, _IPV6_ROUTES) if names else ():
        if function.host.is_unreadable(path):
            return f'an unknown user of its interface: /{path} cannot be read'
    for name in names:
        upper = _find_upper(function, name)
        if upper is not None:
            return f'its interface {name} is part of {upper}'
        if name in routed:
            return f'the host has an address or a route on its interface {name}'
    return None


def list_interfaces(function: PciFunction) -> tuple[str, ...]:
    """Return the names of the network interfaces of a function, without representors.

    In switchdev mode a card also has one interface for each virtual function and each
    subfunction, with a port name such as ``pf0vf1`` or ``pf0sf88``. The name of the
    physical port is such as ``p0`` (kernel: networking/representors.rst).
    """
    return tuple(
        name
        for name in function.names('net')
        if 'pf' not in (function.text(f'net/{name}/phys_port_name') or '')
    )


def list_routed(host: Host) -> frozenset[str]:
    """Return the network interfaces of the host that have an address or a route."""
    lines = (host.text(_IPV4_ROUTES) or '').splitlines()
    by_ipv4 = (line.partition('\t')[0].strip() for line in lines)
    return frozenset((*by_ipv4, *_list_ipv6_routed(host)))


def _find_upper(function: PciFunction, name: str) -> str | None:
    """Return the bridge, bond or VLAN that contains an interface."""
    master = function.host.target(function.path(f'net/{name}/master'))
    if master is not None:
        return master
    for entry in function.names(f'net/{name}'):
        if entry.startswith(_UPPER):
            return entry.removeprefix(_UPPER)
    return None


def _list_ipv6_routed(host: Host) -> Iterator[str]:
    for line in (host.text(_IPV6_ROUTES) or '').splitlines():
        fields = line.split()
        if fields and not fields[0].startswith(_AUTOMATIC_ROUTES):
            yield fields[-1]
