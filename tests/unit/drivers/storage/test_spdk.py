# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for the storage targets of SPDK."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.storage.json_rpc import JsonRpc
from cyborg_lite.drivers.storage.spdk import SpdkTargets
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import HandleType, Health
from tests.doubles.spdk import NQN, SOCKET, FakeSpdk, build_subsystem
from tests.hosts.scans import build_handles, find_device, scan

INSTANCE = '5f2f39b2-7a35-4c1b-9b05-1f4fb43dc3bb'
HOST_NQN = f'nqn.2014-08.org.nvmexpress:uuid:{INSTANCE}'
SUBSYSTEM, CONTROLLER = f'nvmf-{NQN}', 'vhost-vhost.0'


@pytest.fixture
def spdk(tmp_path: Path) -> Iterator[FakeSpdk]:
    spdk = FakeSpdk(tmp_path)
    yield spdk
    spdk.stop()


def build_driver(root: Path) -> SpdkTargets:
    options = {'socket': f'/{SOCKET}', 'call_timeout': 5.0}
    return SpdkTargets(Host('compute-1', root), options)


@pytest.fixture
def driver(spdk: FakeSpdk, tmp_path: Path) -> SpdkTargets:
    return build_driver(tmp_path)


def find_handle(driver: SpdkTargets) -> AllocatedHandle:
    (handle,) = build_handles(find_device(driver, SUBSYSTEM))
    return replace(handle, instance_uuid=INSTANCE)


def test_discover_offers_subsystem_and_controller(driver: SpdkTargets) -> None:
    assert list(scan(driver)) == [SUBSYSTEM, CONTROLLER]
    subsystem = find_device(driver, SUBSYSTEM)
    controller = find_device(driver, CONTROLLER)
    assert subsystem.root.traits == (
        'OWNER_CYBORG',
        'CUSTOM_SPDK',
        'CUSTOM_NVMF',
        'CUSTOM_NVMF_TCP',
    )
    assert controller.root.resource_class == 'CUSTOM_VHOST_USER'
    (handle,), (socket,) = subsystem.root.handles, controller.root.handles
    assert (handle.type, socket.type) == (HandleType.NVMF, HandleType.VHOST_USER)
    assert handle.info == {
        'nqn': NQN,
        'trtype': 'TCP',
        'adrfam': 'IPv4',
        'traddr': '192.0.2.10',
        'trsvcid': '4420',
    }
    assert socket.info == {'socket': '/var/tmp/vhost.0', 'backend': 'block'}
    assert (handle.needs_host, socket.needs_host) == (True, False)


@pytest.mark.parametrize(
    ('changes', 'reason'),
    [
        ({'allow_any_host': True}, 'it allows any host'),
        ({'namespaces': []}, 'it has no namespace'),
        ({'listen_addresses': []}, 'it has no listener'),
    ],
)
def test_discover_withholds_unusable_subsystem(
    changes: dict[str, Any], reason: str, spdk: FakeSpdk, driver: SpdkTargets
) -> None:
    spdk.subsystems = [build_subsystem(**changes)]
    result = scan(driver)[SUBSYSTEM]
    assert reason in result.reason
    assert result.device is not None
    assert result.device.root.total == 0


def test_discover_without_vhost_offers_subsystems(
    spdk: FakeSpdk, driver: SpdkTargets
) -> None:
    spdk.controllers = None
    assert list(scan(driver)) == [SUBSYSTEM]


@pytest.mark.parametrize('reply', [None, b'', b'no JSON', b'[]', b'{"error": 5}'])
def test_discover_stopped_spdk_reserves_targets(
    reply: bytes | None, spdk: FakeSpdk, driver: SpdkTargets, tmp_path: Path
) -> None:
    before = find_device(driver, SUBSYSTEM)
    successor = build_driver(tmp_path)
    successor.restore_device(before)
    if reply is None:
        (tmp_path / SOCKET).unlink()
    spdk.reply = reply
    for process in (driver, successor):
        device = find_device(process, SUBSYSTEM)
        assert (device.health, device.root.reserved) == (Health.FAILED, 1)
        assert 'SPDK: ' in device.health_reason


def test_discover_long_name_is_shortened(spdk: FakeSpdk, driver: SpdkTargets) -> None:
    names = [f'nqn.2016-06.io.spdk:{"x" * 180}{number}' for number in range(2)]
    spdk.subsystems = [build_subsystem(name) for name in names]
    spdk.controllers = []
    addresses = list(scan(driver))
    assert len(set(addresses)) == 2
    assert all(len(address) <= 64 for address in addresses)


def test_is_prepared_without_answer_is_unknown(
    spdk: FakeSpdk, driver: SpdkTargets
) -> None:
    handle = find_handle(driver)
    spdk.reply = b'no JSON'
    with pytest.raises(DriverError, match='SPDK: '):
        driver.is_prepared(handle)


def test_connect_waits_for_connection_of_instance(
    spdk: FakeSpdk, driver: SpdkTargets
) -> None:
    handle = find_handle(driver)
    driver.prepare(handle)
    spdk.connections = ['nqn.2014-08.com.example:other']
    with pytest.raises(DriverError, match=f'{HOST_NQN} has no connection to {NQN}'):
        driver.connect(handle)
    spdk.connections.append(HOST_NQN)
    driver.connect(handle)
    # A restart of SPDK loses the list of hosts.
    spdk.subsystems[1]['hosts'] = []
    driver.connect(handle)
    assert spdk.list_hosts() == [HOST_NQN]


def test_connect_spdk_without_list_of_connections_succeeds(
    spdk: FakeSpdk, driver: SpdkTargets
) -> None:
    handle = find_handle(driver)
    spdk.absent.add('nvmf_subsystem_get_controllers')
    driver.connect(handle)
    assert spdk.list_hosts() == [HOST_NQN]


def test_own_host_is_not_foreign(
    spdk: FakeSpdk, driver: SpdkTargets, tmp_path: Path
) -> None:
    def is_in_use(process: SpdkTargets) -> bool:
        return find_device(process, SUBSYSTEM).root.handles[0].in_use

    handle = find_handle(driver)
    driver.prepare(handle)
    successor = build_driver(tmp_path)
    assert is_in_use(successor)
    successor.restore_handles([handle])
    assert (is_in_use(driver), is_in_use(successor)) == (False, False)
    spdk.subsystems[1]['hosts'].append({'nqn': 'nqn.2014-08.com.example:other'})
    assert is_in_use(driver)
    driver.release(handle)
    assert spdk.list_hosts() == ['nqn.2014-08.com.example:other']


def test_refused_call_raises_driver_error(spdk: FakeSpdk, driver: SpdkTargets) -> None:
    handle = find_handle(driver)
    spdk.refusal = 'Invalid parameters'
    with pytest.raises(DriverError, match='Invalid parameters'):
        driver.prepare(handle)
    spdk.refusal = None
    driver.prepare(handle)
    spdk.subsystems = []
    with pytest.raises(DriverError, match='SPDK has no subsystem'):
        driver.prepare(handle)
    driver.release(handle)


def test_call_large_answer_is_read_whole(tmp_path: Path) -> None:
    root = tmp_path / ('deep' * 30)  # longer than the address of a socket
    server = FakeSpdk(root)
    server.subsystems = [{'nqn': 'x' * 1000}] * 1000
    client = JsonRpc(root / SOCKET, 5.0)
    assert client.call('nvmf_get_subsystems') == server.subsystems
    server.stop()
