# SPDX-License-Identifier: Apache-2.0
"""Tests of the use of PCI functions by the network of the host."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from cyborg_lite.drivers.host import network_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from tests.hosts.sysfs_device import Plug

_ADDRESS: Final = '0000:5e:00.0'
_NETWORK: Final = {'class': '020000', 'driver': 'mlx5_core'}
_INTERFACE: Final = {'name': 'ens1', 'mac': '02:00:00:00:00:01', 'operstate': 'down'}
_ACTIVE: Final = {'net': [{**_INTERFACE, 'operstate': 'up'}]}


# Any: fields of the fixtures have various types.
def _find_user(host: Host, plug: Plug, fields: Mapping[str, Any]) -> str | None:
    plug(_ADDRESS, ('15b3', '101d'), **{**_NETWORK, 'net': [_INTERFACE], **fields})
    routed = network_use.list_routed(host)
    return network_use.find_network_user(PciFunction(host, _ADDRESS), routed)


def test_find_network_user_interface_of_vf_up_is_free(host: Host, plug: Plug) -> None:
    directory = plug('0000:5e:00.1')
    physical = {'links': {'physfn': str(directory.relative_to(host.root))}}
    assert _find_user(host, plug, {**_ACTIVE, **physical}) is None


@pytest.mark.parametrize(
    ('fields', 'user'),
    [
        (
            {'links': {'net/ens1/master': 'sys/devices/virtual/net/bond0'}},
            'its interface ens1 is part of bond0',
        ),
        (
            {'links': {'net/ens1/upper_vlan7': 'sys/devices/virtual/net/vlan7'}},
            'its interface ens1 is part of vlan7',
        ),
        ({'dirs': ['vdpa3']}, 'it has the vDPA device vdpa3 without a driver'),
        ({'net': []}, 'bound to mlx5_core, and no network interface is visible'),
        (_ACTIVE, 'its interface ens1 is up'),
    ],
)
def test_find_network_user_names_user(
    host: Host, plug: Plug, fields: Mapping[str, Any], user: str
) -> None:
    for name in ('bond0', 'vlan7'):
        (host.root / 'sys/devices/virtual/net' / name).mkdir(parents=True)
    assert _find_user(host, plug, fields) == user


@pytest.mark.parametrize('path', ['proc/net/route', 'proc/net/ipv6_route'])
def test_find_network_user_unreadable_routes_are_user(
    host: Host, plug: Plug, path: str
) -> None:
    (host.root / path).parent.mkdir(parents=True)
    (host.root / path).write_bytes(b'ens1\xff')
    reason = f'an unknown user of its interface: /{path} cannot be read'
    assert _find_user(host, plug, {}) == reason


@pytest.mark.parametrize(
    ('vpd', 'has_hgx', 'user'),
    [
        ('V3 SMDL=SW_MNG', False, 'it manages the NVSwitches'),
        ('V3 SMDL=SW_MNG', True, 'it manages the NVSwitches'),
        ('V3 other', True, None),
        (None, True, 'it may manage the NVSwitches'),
        (None, False, None),
    ],
)
def test_find_network_user_switch_management_is_user(
    host: Host, plug: Plug, vpd: str | None, has_hgx: bool, user: str | None
) -> None:
    if has_hgx:
        plug('0000:1b:00.0', ('10de', '2901'), **{'class': '030200'})
    fields: dict[str, Any] = {'class': '020700', 'driver': 'mlx5_core', 'net': []}
    if vpd:
        fields['files'] = {'vpd': vpd}
    plug(_ADDRESS, ('15b3', '1021'), **fields)
    reason = network_use.find_network_user(PciFunction(host, _ADDRESS), ())
    assert reason is None if user is None else str(reason).startswith(user)


@pytest.mark.parametrize('driver', ['vfio-pci', 'pci-stub', None])
def test_find_network_user_without_host_driver_is_free(
    host: Host, plug: Plug, driver: str | None
) -> None:
    assert _find_user(host, plug, {'net': [], 'driver': driver}) is None


@pytest.mark.parametrize(
    ('file', 'line', 'is_used'),
    [
        ('route', 'ens1\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0', True),
        (
            'route',
            'ens2\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0',
            False,
        ),
        ('ipv6_route', f'2001{"0" * 28} 40 {"0" * 32} 00 0 0 0 0 1 ens1', True),
        ('ipv6_route', f'fe80{"0" * 28} 40 {"0" * 32} 00 0 0 0 0 1 ens1', False),
    ],
)
def test_find_network_user_route_means_use(
    host: Host, plug: Plug, file: str, line: str, *, is_used: bool
) -> None:
    (host.root / 'proc/net').mkdir(parents=True)
    (host.root / 'proc/net' / file).write_text(f'{line}\n')
    user = 'the host has an address or a route on its interface ens1'
    assert _find_user(host, plug, {}) == (user if is_used else None)


def test_list_interfaces_ignores_representors(host: Host, plug: Plug) -> None:
    ports = {
        'en1_0': 'pf0vf0',
        'en1_1': 'c1pf0vf1',
        'en1_2': 'pf0sf88',
        'en1_3': 'pf0',
        'ens1': 'p0',
    }
    interfaces = [
        {**_INTERFACE, 'name': name, 'phys_port_name': port}
        for name, port in ports.items()
    ]
    plug(_ADDRESS, **{**_NETWORK, 'net': interfaces})
    assert network_use.list_interfaces(PciFunction(host, _ADDRESS)) == ('ens1',)
