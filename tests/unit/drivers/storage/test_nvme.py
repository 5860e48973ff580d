# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for NVMe drives."""

import json
import shutil
import threading
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.storage.nvme import SMART_SIGNALS, NvmeDrive, parse_log
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.hosts import mount_tables, sysfs_tree
from tests.hosts.pci_links import bind_driver, find_directory
from tests.hosts.scans import find_device, scan
from tests.hosts.sysfs_device import Plug

_BOOT, _FREE = '0000:c1:00.0', '0000:c2:00.0'
_PORTS = ('0000:d1:00.0', '0000:d2:00.0')
_SERIAL = 'S4YNNE0R200001'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    sysfs_tree.build('nvme-lvm', tmp_path)
    return Host('compute-1', tmp_path)


def _driver(host: Host, *drives: str) -> NvmeDrive:
    options = {'offer_without_reset': False, 'drives': drives or ('*',)}
    return NvmeDrive(host, options)


def _attach(host: Host, address: str) -> None:
    """Bind a drive to vfio-pci, as for a guest."""
    shutil.rmtree(find_directory(host, address) / 'nvme')
    bind_driver(host, address, 'vfio-pci')


def _plug_port(
    plug: Plug,
    address: str,
    number: int,
    serial: str = _SERIAL,
    product: str = 'a824',
) -> None:
    """Add a controller of a dual-port drive with its namespace."""
    name = f'nvme{number}'
    namespace = {'name': f'{name}n1', 'size_512': 7501476528}
    nvme = {
        'name': name,
        'model': 'SAMSUNG MZWLJ3T8HBLS-00007',
        'serial': serial,
        'firmware': 'EPK9CB5Q',
        'state': 'live',
        'namespaces': [namespace],
    }
    plug(
        address,
        ('144d', product),
        **{'class': '010802', 'driver': 'nvme', 'iommu_group': 90 + number},
        nvme=nvme,
    )


def _plug_ports(plug: Plug) -> None:
    """Add both controllers of a dual-port drive."""
    for number, address in enumerate(_PORTS, 8):
        _plug_port(plug, address, number)


def _list_offered(driver: NvmeDrive) -> list[str]:
    return [
        result.address
        for result in driver.discover()
        if result.device and result.device.root.handles
    ]


def test_discover_drive_in_use_names_mount(host: Host) -> None:
    result = scan(_driver(host))[_BOOT]
    assert result.reason == 'in use by the host: /boot/efi is mounted from nvme0n1p1'
    assert result.device is not None
    assert result.device.root.handles == ()


def test_discover_drive_without_namespaces_is_withheld(host: Host) -> None:
    """The content of such a drive is unknown."""
    shutil.rmtree(host.root / 'sys/class/nvme-subsystem')
    result = scan(_driver(host))[_BOOT]
    assert result.reason == 'in use by the host: its namespaces cannot be found'


def test_discover_drive_in_guest_keeps_identity(host: Host) -> None:
    driver = _driver(host)
    before = find_device(driver, _FREE)
    assert before.hardware_id == 'BTLJ0000000X4P0DGN'
    typed = {item.name: item.value for item in before.root.typed_attributes}
    assert typed['firmware']
    _attach(host, _FREE)
    assert find_device(driver, _FREE) == before


def test_discover_dead_controller_is_reserved(host: Host) -> None:
    (find_directory(host, _FREE) / 'nvme/nvme1/state').write_text('dead\n')
    result = scan(_driver(host))[_FREE]
    assert result.reason == 'the controller nvme1 is dead'
    assert result.device is not None
    assert result.device.root.unavailable == result.device.root.total == 1


def test_discover_unknown_vendor_has_no_vendor_trait(host: Host, plug: Plug) -> None:
    fields = {'class': '010802', 'driver': 'vfio-pci', 'iommu_group': 99}
    plug('0000:d1:00.0', ('fade', '5407'), **fields)
    device = find_device(_driver(host), '0000:d1:00.0')
    assert device.root.traits == ('OWNER_CYBORG', 'CUSTOM_SSD_PRODUCT_ID_5407')
    assert (device.model, device.driver) == ('fade:5407', 'fade')


def test_discover_dual_port_drive_offers_first(host: Host, plug: Plug) -> None:
    _plug_ports(plug)
    _plug_port(plug, '0000:d3:00.0', 10, serial='S4YNNE0R200002')
    driver = _driver(host)
    assert _list_offered(driver) == [_FREE, _PORTS[0], '0000:d3:00.0']
    device = find_device(driver, _PORTS[1])
    assert device.health_reason == f'same drive as {_PORTS[0]}: serial number {_SERIAL}'
    assert device.root.total == 0


def test_discover_remaining_port_is_offered_and_stays(host: Host, plug: Plug) -> None:
    _plug_ports(plug)
    driver = _driver(host)
    scan(driver)
    link = host.root / 'sys/bus/pci/devices' / _PORTS[0]
    target = link.readlink()
    link.unlink()
    assert _list_offered(driver) == [_FREE, _PORTS[1]]
    link.symlink_to(target)
    assert _list_offered(driver) == [_FREE, _PORTS[1]]


def test_discover_drives_of_other_models_are_independent(
    host: Host, plug: Plug
) -> None:
    _plug_port(plug, _PORTS[0], 8)
    _plug_port(plug, _PORTS[1], 9, product='a80a')
    assert _list_offered(_driver(host)) == [_FREE, *_PORTS]


def test_discover_dual_port_drive_in_guest_is_offered_once(
    host: Host, plug: Plug
) -> None:
    """The serial number cannot be read, also not by an agent that starts then."""
    _plug_ports(plug)
    driver = _driver(host)
    results = scan(driver)
    _attach(host, _PORTS[0])
    assert _list_offered(driver) == [_FREE, _PORTS[0]]
    restarted = _driver(host)
    for result in results.values():
        if result.device:
            restarted.restore_device(result.device)
    assert _list_offered(restarted) == [_FREE, _PORTS[0]]
    _attach(host, _PORTS[1])
    assert _list_offered(restarted) == [_FREE, _PORTS[0]]


@pytest.mark.parametrize('is_restarted', [False, True])
def test_discover_later_port_does_not_displace_offered(
    host: Host, plug: Plug, is_restarted: bool
) -> None:
    _plug_port(plug, _PORTS[1], 9)
    driver = _driver(host)
    device = find_device(driver, _PORTS[1])
    if is_restarted:
        driver = _driver(host)
        driver.restore_device(device)
    _attach(host, _PORTS[1])
    _plug_port(plug, _PORTS[0], 8)
    assert _list_offered(driver) == [_FREE, _PORTS[1]]
    assert _list_offered(driver) == [_FREE, _PORTS[1]]


def test_discover_port_of_used_drive_is_withheld(host: Host, plug: Plug) -> None:
    _plug_ports(plug)
    driver = _driver(host)
    scan(driver)
    _attach(host, _PORTS[0])
    mounts = host.root / 'proc/mounts'
    mounts.write_text(mounts.read_text() + '\n/dev/nvme9n1 /srv ext4 rw 0 0\n')
    results = scan(driver)
    first, second = (results[address].reason for address in _PORTS)
    used = '/srv is mounted from nvme9n1'
    assert first == f'in use by the host through {_PORTS[1]}: {used}'
    assert second == f'in use by the host: {used}'


def test_restore_device_of_other_model_ignores_serial(host: Host, plug: Plug) -> None:
    _plug_port(plug, _PORTS[0], 8)
    device = find_device(_driver(host), _PORTS[0])
    _attach(host, _PORTS[0])
    (find_directory(host, _PORTS[0]) / 'device').write_text('0xa80a\n')
    restarted = _driver(host)
    restarted.restore_device(device)
    assert find_device(restarted, _PORTS[0]).hardware_id == _PORTS[0]


def test_set_mode_of_withheld_port_is_refused(host: Host, plug: Plug) -> None:
    """A guest may have the drive at its other port."""
    _plug_ports(plug)
    modes = {'drives': ['*'], 'modes': ['144d:a824 = namespaces-2']}
    driver = NvmeDrive(host, {'offer_without_reset': False, **modes})
    first, second = (find_device(driver, address) for address in _PORTS)
    assert driver.modes(first)
    assert driver.modes(second) == ()
    with pytest.raises(DeviceBusy, match='same drive as'):
        driver.set_mode(second, 'namespaces-2')


@pytest.mark.parametrize('drive', ['BTLJ*', 'btlj0000000x4p0dgn', _FREE.upper()])
def test_discover_selected_drive_only_is_offered(
    host: Host, plug: Plug, drive: str
) -> None:
    _plug_port(plug, _PORTS[0], 8)
    driver = _driver(host, drive, '0000:d1')
    assert _list_offered(driver) == [_FREE]
    result = scan(driver)[_PORTS[0]]
    assert result.reason == f'[nvme_driver] drives lacks {_SERIAL}'
    _attach(host, _FREE)
    assert _list_offered(driver) == [_FREE]


def test_unselected_drive_is_never_changed(host: Host) -> None:
    options = {'offer_without_reset': False, 'modes': ['* = namespaces-2']}
    driver = NvmeDrive(host, options)
    assert _list_offered(driver) == []
    device = find_device(driver, _FREE)
    name = device.root.name
    handle = AllocatedHandle('u', '', 'h', name, 'X', _FREE, _FREE, 'PCI')
    with pytest.raises(DriverError, match=r'\[nvme_driver\] drives lacks BTLJ'):
        driver.set_mode(device, 'namespaces-2')
    with pytest.raises(DriverError, match=r'\[nvme_driver\] drives lacks BTLJ'):
        driver.list_clean_steps(handle)
    with pytest.raises(DriverError, match=r'\[nvme_driver\] drives lacks BTLJ'):
        driver.run_clean_step(handle, 'verify', threading.Event())


@pytest.mark.parametrize('fault', mount_tables.FAULTS)
def test_discover_unknown_system_disk_withholds_all(tmp_path: Path, fault: str) -> None:
    sysfs_tree.build('nvme-ascend', tmp_path)
    mount_tables.replace_tables(tmp_path, fault)
    driver = _driver(Host('compute-1', tmp_path))
    assert _list_offered(driver) == []
    reason = scan(driver)['0000:01:00.0'].reason
    assert reason.startswith('in use by the host: it may be the system disk')


_LOG = {'critical_warning': 0, 'percent_used': 7, 'media_errors': 3}


def test_parse_log_names_each_signal() -> None:
    readings = parse_log(json.dumps(_LOG))
    assert readings.keys() == {*SMART_SIGNALS}
    assert {name: n for name, n in readings.items() if n} == {
        'smart_percentage_used': 7,
        'smart_media_errors': 3,
    }


@pytest.mark.parametrize(('bit', 'signal'), [*enumerate(SMART_SIGNALS[:5])])
def test_parse_log_tells_warnings_apart(bit: int, signal: str) -> None:
    readings = parse_log(json.dumps({**_LOG, 'critical_warning': 1 << bit}))
    assert [name for name in SMART_SIGNALS[:5] if readings[name]] == [signal]


@pytest.mark.parametrize('text', ['', '[]', '{"percent_used": 1}', '{"critical_warn'])
def test_parse_log_refuses_other_texts(text: str) -> None:
    with pytest.raises(ValueError, match=r'SMART|Expecting|Unterminated'):
        parse_log(text)
