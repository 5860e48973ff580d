# SPDX-License-Identifier: Apache-2.0
"""Guests of Nova's libvirt driver: the XML with which each one is defined."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.nova_guest import HostDevice
from tests.servers.libvirt_host import (
    DIVIDED,
    VGPU_TYPE,
    WHOLE,
    LibvirtHost,
    read_devices,
)
from tests.servers.openstack import OpenStack, Server

CARD = HostDevice('pci', WHOLE, 'yes')


@pytest.fixture(scope='module')
def host(cloud: OpenStack) -> Iterator[LibvirtHost]:
    """Add a host to the cloud."""
    with LibvirtHost(cloud, 'gpu1') as host:
        yield host


@pytest.fixture(autouse=True)
def nothing_left_on_host(host: LibvirtHost) -> Iterator[None]:
    """Check after each test that the host has no own mdev and no definition."""
    yield
    host.cloud.delete_servers()
    host.cloud.until(lambda: not host.list_own_mdevs(), 'the mdevs are removed')
    host.cloud.until(lambda: not host.list_definitions(), 'no definition is left')


def boot(host: LibvirtHost, **resources: int) -> Server:
    """Boot a server with devices of the host."""
    return host.cloud.boot(host.cloud.create_profile(**resources), host.name)


def list_mdevs(server: Server) -> list[HostDevice]:
    """Return the devices that the guest must have for its mdevs."""
    return sorted(
        HostDevice('mdev', arq['attach_handle_uuid'])
        for arq in server.arqs()
        if arq['attach_handle_type'] == 'MDEV'
    )


def act(server: Server, action: str, status: str, body: Any = None) -> None:
    """Post an action and wait until its event ends."""
    server.act(action, body)
    server.wait_idle(status)


def start_after_reboot(host: LibvirtHost, server: Server) -> None:
    """Start a server whose guest ended with the host."""
    server.wait_idle('SHUTOFF')
    act(server, 'os-start', 'ACTIVE')
    assert host.is_running(server)


def test_mdev_has_uuid_of_handle(host: LibvirtHost) -> None:
    earlier = len(host.kernel.written)  # also of instances with the same handle
    server = boot(host, VGPU=1)
    (mdev,) = list_mdevs(server)
    assert host.list_devices(server) == [mdev]
    assert host.list_own_mdevs() == {mdev.source}
    # The agent has created it, so Nova has not defined it.
    assert host.list_definitions() == set()
    written = host.kernel.written[earlier:]
    creations = [path for path, text in written if text == mdev.source]
    kind = f'{DIVIDED}/mdev_supported_types/{VGPU_TYPE}'
    assert creations == [f'sys/bus/pci/devices/{kind}/create']
    server.delete()
    host.cloud.until(lambda: not host.list_own_mdevs(), 'the mdev is removed')


def test_both_kinds_are_in_every_definition(host: LibvirtHost) -> None:
    server = boot(host, VGPU=2, PGPU=1)
    devices = [*list_mdevs(server), CARD]
    assert len(devices) == 3
    infos = [arq['attach_handle_info'] for arq in server.arqs()]
    assert [info['managed'] for info in infos if 'managed' in info] == ['true']
    act(server, 'reboot', 'ACTIVE', {'type': 'HARD'})
    act(server, 'os-stop', 'SHUTOFF')
    act(server, 'os-start', 'ACTIVE')
    act(server, 'rebuild', 'ACTIVE', {'imageRef': host.cloud.image})
    definitions = [sorted(read_devices(path)) for path in host.list_xmls(server)]
    assert definitions == [devices] * 4


def test_card_of_guest_is_at_vfio_and_stays_bound(host: LibvirtHost) -> None:
    """Libvirt takes a managed function from its driver while the guest runs."""
    assert host.find_driver(WHOLE) == 'nvidia'
    server = boot(host, PGPU=1)
    assert host.find_driver(WHOLE) == 'vfio-pci'
    host.restart_agent()
    act(server, 'os-stop', 'SHUTOFF')
    assert host.find_driver(WHOLE) == 'nvidia'
    act(server, 'os-start', 'ACTIVE')
    assert host.find_driver(WHOLE) == 'vfio-pci'
    assert [arq['state'] for arq in server.arqs()] == ['Bound']


def test_rescued_guest_has_mdevs_only(host: LibvirtHost) -> None:
    server = boot(host, VGPU=1, PGPU=1)
    mdevs = list_mdevs(server)
    act(server, 'rescue', 'RESCUE', {})
    assert host.list_devices(server) == mdevs
    act(server, 'unrescue', 'ACTIVE')
    assert host.list_devices(server) == [*mdevs, CARD]


def test_unshelved_guest_has_mdev_again(host: LibvirtHost) -> None:
    server = boot(host, VGPU=1, PGPU=1)
    act(server, 'shelve', 'SHELVED_OFFLOADED')
    host.cloud.until(lambda: not host.list_own_mdevs(), 'the mdev is removed')
    act(server, 'unshelve', 'ACTIVE')
    mdevs = list_mdevs(server)
    assert host.list_devices(server) == [*mdevs, CARD]
    assert host.list_own_mdevs() == {mdev.source for mdev in mdevs}


def test_host_reboot_agent_first_restores_mdevs(host: LibvirtHost) -> None:
    server = boot(host, VGPU=1, PGPU=1)
    devices = [*list_mdevs(server), CARD]
    host.power_cycle()
    assert host.list_own_mdevs() == set()
    host.start_agent()
    assert host.list_own_mdevs() == {devices[0].source}
    host.start_compute()
    start_after_reboot(host, server)
    assert host.list_devices(server) == devices
    assert host.list_definitions() == set()


def test_host_reboot_nova_first_waits_for_agent(host: LibvirtHost) -> None:
    """Nova gets 423, starts nothing and creates no mdev before the agent."""
    server = boot(host, VGPU=1)
    devices = list_mdevs(server)
    host.power_cycle()
    host.start_compute()
    server.wait_idle('SHUTOFF')
    server.act('os-start')
    host.cloud.until(lambda: server.results('start') == ['Error'], 'the start fails')
    assert host.list_own_mdevs() | host.list_definitions() == set()
    host.start_agent()
    host.cloud.until(
        lambda: [arq['state'] for arq in server.arqs()] == ['Bound'], 'it is rebuilt'
    )
    start_after_reboot(host, server)
    assert host.list_devices(server) == devices
    assert host.list_definitions() == set()


def test_resumed_guest_has_mdevs_only(host: LibvirtHost) -> None:
    """At the boot of the host Nova reads no ARQs, so a resumed guest lacks its card."""
    server = boot(host, VGPU=1, PGPU=1)
    mdevs = list_mdevs(server)
    host.power_cycle()
    host.start_agent()
    host.start_compute(resumes=True)
    host.cloud.until(lambda: host.is_running(server), 'the guest is resumed')
    assert host.list_devices(server) == mdevs
    server.wait_idle('ACTIVE')
    act(server, 'reboot', 'ACTIVE', {'type': 'HARD'})
    assert host.list_devices(server) == [*mdevs, CARD]


def test_nova_creates_mdevs_and_agent_removes_them(host: LibvirtHost) -> None:
    host.restart_agent(creates_mdevs=False)
    server = boot(host, VGPU=1)
    (mdev,) = list_mdevs(server)
    assert host.list_devices(server) == [mdev]
    assert host.list_own_mdevs() == host.list_definitions() == {mdev.source}
    server.delete()
    host.cloud.until(lambda: not host.list_own_mdevs(), 'the mdev is removed')
    host.cloud.until(lambda: not host.list_definitions(), 'so is its definition')
    host.restart_agent()


def test_leftover_definition_is_removed_by_agent(host: LibvirtHost) -> None:
    """The server is deleted while no agent runs; nova-compute does not start then."""
    host.restart_agent(creates_mdevs=False)
    server = boot(host, VGPU=1)
    (mdev,) = list_mdevs(server)
    host.cloud.kill(host.agent)
    server.delete()
    host.power_cycle()
    host.kernel.break_off(f'{VGPU_TYPE}/create')
    assert host.start_compute_in_vain() != 0
    assert host.list_definitions() == {mdev.source}
    host.start_agent()
    host.cloud.until(lambda: not host.list_definitions(), 'the definition is removed')
    host.kernel.repair()
    host.start_compute()
