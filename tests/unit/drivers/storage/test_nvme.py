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
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.hosts import mount_tables, sysfs_tree
from tests.hosts.sysfs_device import Plug

_BOOT, _FREE = '0000:c1:00.0', '0000:c2:00.0'
_PORTS = ('0000:d1:00.0', '0000:d2:00.0')
_SERIAL = 'S4YNNE0R200001'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    sysfs_tree.build('nvme-lvm', tmp_path)
    return Host('compute-1', tmp_path)


def _results(driver: NvmeDrive) -> dict[str, DiscoveryResult]:
    return {result.address: result for result in driver.discover()}


def _driver(host: Host, *drives: str) -> NvmeDrive:
    options = {'offer_without_reset': False, 'drives': drives or ('*',)}
    return NvmeDrive(host, options)


def _directory(host: Host, address: str) -> Path:
    return (host.root / 'sys/bus/pci/devices' / address).resolve()


def _attach(host: Host, address: str) -> None:
    """Bind a drive to vfio-pci, as for a guest."""
    directory = _directory(host, address)
    shutil.rmtree(directory / 'nvme')
    (directory / 'driver').unlink()
    (host.root / 'sys/bus/pci/drivers/vfio-pci').mkdir(exist_ok=True)
    (directory / 'driver').symlink_to(host.root / 'sys/bus/pci/drivers/vfio-pci')


def _plug_port(plug: Plug, address: str, number: int, serial: str = _SERIAL) -> None:
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
        ('144d', 'a824'),
        **{'class': '010802', 'driver': 'nvme', 'iommu_group': 90 + number},
        nvme=nvme,
    )


def _list_offered(driver: NvmeDrive) -> list[str]:
    return [
        result.address
        for result in driver.discover()
        if result.device and result.device.root.handles
    ]


def test_discover_drive_in_use_names_mount(host: Host) -> None:
    result = _results(_driver(host))[_BOOT]
    assert result.reason == 'in use by the host: /boot/efi is mounted from nvme0n1p1'
    assert result.device is not None
    assert result.device.root.handles == ()


def test_discover_drive_without_namespaces_is_withheld(host: Host) -> None:
    """The content of such a drive is unknown."""
    shutil.rmtree(host.root / 'sys/class/nvme-subsystem')
    result = _results(_driver(host))[_BOOT]
    assert result.reason == 'in use by the host: its namespaces cannot be found'


def test_discover_drive_in_guest_keeps_identity(host: Host) -> None:
    driver = _driver(host)
    before = _results(driver)[_FREE].device
    assert before is not None
    assert before.hardware_id == 'BTLJ0000000X4P0DGN'
    typed = {item.name: item.value for item in before.root.typed_attributes}
    assert typed['firmware']
    _attach(host, _FREE)
    assert _results(driver)[_FREE].device == before


def test_discover_dead_controller_is_reserved(host: Host) -> None:
    (_directory(host, _FREE) / 'nvme/nvme1/state').write_text('dead\n')
    result = _results(_driver(host))[_FREE]
    assert result.reason == 'the controller nvme1 is dead'
    assert result.device is not None
    assert result.device.root.unavailable == result.device.root.total == 1


def test_discover_unknown_vendor_has_no_vendor_trait(host: Host, plug: Plug) -> None:
    fields = {'class': '010802', 'driver': 'vfio-pci', 'iommu_group': 99}
    plug('0000:d1:00.0', ('fade', '5407'), **fields)
    device = _results(_driver(host))['0000:d1:00.0'].device
    assert device is not None
    assert device.root.traits == ('OWNER_CYBORG', 'CUSTOM_SSD_PRODUCT_ID_5407')
    assert (device.model, device.driver) == ('fade:5407', 'fade')


def test_discover_dual_port_drive_offers_first(host: Host, plug: Plug) -> None:
    for number, address in enumerate(_PORTS, 8):
        _plug_port(plug, address, number)
    _plug_port(plug, '0000:d3:00.0', 10, serial='S4YNNE0R200002')
    driver = _driver(host)
    assert _list_offered(driver) == [_FREE, _PORTS[0], '0000:d3:00.0']
    device = _results(driver)[_PORTS[1]].device
    assert device is not None
    assert device.health_reason == f'same drive as {_PORTS[0]}: serial number {_SERIAL}'
    assert device.root.total == 0


def test_discover_dual_port_drive_in_guest_is_offered_once(
    host: Host, plug: Plug
) -> None:
    """The serial number cannot be read, also not by an agent that starts then."""
    for number, address in enumerate(_PORTS, 8):
        _plug_port(plug, address, number)
    driver = _driver(host)
    results = _results(driver)
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
    device = _results(driver)[_PORTS[1]].device
    assert device is not None
    if is_restarted:
        driver = _driver(host)
        driver.restore_device(device)
    _attach(host, _PORTS[1])
    _plug_port(plug, _PORTS[0], 8)
    assert _list_offered(driver) == [_FREE, _PORTS[1]]
    assert _list_offered(driver) == [_FREE, _PORTS[1]]


def test_discover_port_of_used_drive_is_withheld(host: Host, plug: Plug) -> None:
    for number, address in enumerate(_PORTS, 8):
        _plug_port(plug, address, number)
    driver = _driver(host)
    _results(driver)
    _attach(host, _PORTS[0])
    mounts = host.root / 'proc/mounts'
    mounts.write_text(mounts.read_text() + '\n/dev/nvme9n1 /srv ext4 rw 0 0\n')
    reasons = {item.address: item.reason for item in driver.discover()}
    used = '/srv is mounted from nvme9n1'
    assert reasons[_PORTS[0]] == f'in use by the host through {_PORTS[1]}: {used}'
    assert reasons[_PORTS[1]] == f'in use by the host: {used}'


def test_restore_device_of_other_model_ignores_serial(host: Host, plug: Plug) -> None:
    _plug_port(plug, _PORTS[0], 8)
    device = _results(_driver(host))[_PORTS[0]].device
    assert device is not None
    _attach(host, _PORTS[0])
    (_directory(host, _PORTS[0]) / 'device').write_text('0xa80a\n')
    restarted = _driver(host)
    restarted.restore_device(device)
    exchanged = _results(restarted)[_PORTS[0]].device
    assert exchanged is not None
    assert exchanged.hardware_id == _PORTS[0]


def test_set_mode_of_withheld_port_is_refused(host: Host, plug: Plug) -> None:
    """A guest may have the drive at its other port."""
    for number, address in enumerate(_PORTS, 8):
        _plug_port(plug, address, number)
    modes = {'drives': ['*'], 'modes': ['144d:a824 = namespaces-2']}
    driver = NvmeDrive(host, {'offer_without_reset': False, **modes})
    devices = {item.address: item.device for item in driver.discover()}
    first, second = (devices[address] for address in _PORTS)
    assert first is not None
    assert second is not None
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
    result = _results(driver)[_PORTS[0]]
    assert result.reason == f'[nvme_driver] drives lacks {_SERIAL}'
    _attach(host, _FREE)
    assert _list_offered(driver) == [_FREE]


def test_unselected_drive_is_never_changed(host: Host) -> None:
    options = {'offer_without_reset': False, 'modes': ['* = namespaces-2']}
    driver = NvmeDrive(host, options)
    assert _list_offered(driver) == []
    device = _results(driver)[_FREE].device
    assert device is not None
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
    reason = _results(driver)['0000:01:00.0'].reason
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
