# SPDX-License-Identifier: Apache-2.0
"""Stored handles of cards that are put into another slot."""

import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final

from cyborg_lite.agent.arqs.handle_repair import HandleRepair
from cyborg_lite.agent.inventory.hardware_monitor import AgentIntervals, HardwareMonitor
from cyborg_lite.agent.inventory.moved_devices import follow_devices
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Device,
    HandleType,
    Health,
)
from tests.builders.agent_parts import AgentParts
from tests.doubles.drivers import discovery_result, handle
from tests.hosts import sysfs_tree
from tests.hosts.fixture_hosts import renumber_buses
from tests.hosts.vgpu_bench import VgpuBench

OLD: Final = '0000:01:00.0'
NEW: Final = '0000:05:00.0'


def card(address: str, serial: str = 'S1', units: int = 3) -> Device:
    """Return a card whose handles are virtual functions."""
    device = discovery_result(address).device
    assert device is not None
    bus = address.split(':')[1]
    handles = tuple(
        AttachHandle(f'0000:{bus}:00.{n}', HandleType.MDEV, {'bus': bus, 'n': str(n)})
        for n in range(units)
    )
    root = replace(device.root, handles=handles, total=units)
    return replace(device, hardware_id=serial, root=root)


def prepare(cache: Cache, device: Device, number: int = 2) -> AllocatedHandle:
    """Store the handle of a function of a card, and scan the card once."""
    unit = device.root.handles[number]
    stored = replace(handle(device.control_address), key=unit.key, info=unit.info)
    cache.add_handles([stored])
    cache.mark_prepared([stored.uuid], 'boot-1')
    assert follow_devices(cache, [device]) == ()
    return stored


def test_follow_devices_moved_card_moves_handle(cache: Cache) -> None:
    stored = prepare(cache, card(OLD))
    # The card is away for a while.
    assert follow_devices(cache, []) == ()
    (moved,) = follow_devices(cache, [card(NEW)])
    assert moved == replace(
        stored,
        control_address=NEW,
        key='0000:05:00.2',
        info={'bus': '05', 'n': '2'},
    )
    entry = cache.handles[stored.uuid]
    assert (entry.handle, entry.boot_id) == (moved, 'boot-1')
    assert follow_devices(cache, [card(NEW)]) == ()


def test_follow_devices_survives_restart(cache: Cache) -> None:
    stored = prepare(cache, card(OLD))
    cache.open()
    (moved,) = follow_devices(cache, [card(NEW)])
    assert (moved.uuid, moved.control_address) == (stored.uuid, NEW)


def test_follow_devices_exchanged_cards_exchange_handles(cache: Cache) -> None:
    prepare(cache, card(OLD))
    (moved,) = follow_devices(cache, [card(OLD, 'S2'), card(NEW)])
    assert moved.control_address == NEW
    (device,) = follow_devices(cache, [card(OLD), card(NEW, 'S2')])
    assert device.control_address == OLD


def test_follow_devices_other_card_in_slot_keeps_handle(cache: Cache) -> None:
    """An instance never gets another card silently."""
    stored = prepare(cache, card(OLD))
    for devices in (
        [card(OLD, 'S2')],
        [card(NEW, 'S2')],
        # A card that is reported as gone is not in its slot.
        [replace(card(NEW), health=Health.GONE)],
        # The moved card does not have the function any more.
        [card(NEW, units=1)],
        # Without unique serial numbers no card can be recognized.
        [card(NEW), card('0000:06:00.0')],
    ):
        assert follow_devices(cache, devices) == ()
        assert cache.handles[stored.uuid].handle == stored


def test_follow_devices_card_without_serial_stays(cache: Cache) -> None:
    stored = prepare(cache, card(OLD, serial=OLD))
    assert follow_devices(cache, [card(NEW, serial=NEW)]) == ()
    assert cache.handles[stored.uuid].serial == ''


def test_mdev_is_created_again_on_the_moved_card(tmp_path: Path) -> None:
    """Move the card of a guest, with a real driver on an emulated kernel."""
    serial = 'GPU-6ee9bd5d-26e1-4f9e-9f0e-1b6d0c0a3b00'
    bench = VgpuBench(tmp_path / 'host', 't4-mdev', f'{serial}=nvidia-231')
    drivers = {NvidiaGpu.NAME: bench.driver}
    parts = AgentParts(bench.host, drivers, tmp_path / 'state')
    state, preparation = (parts.cache, parts.journal), parts.preparation
    intervals, stopping = AgentIntervals(60, 30, 60), threading.Event()
    monitor = HardwareMonitor(parts.discovery, *state, intervals, stopping)
    monitor.scan()
    vgpu = bench.handle('0000:3b:00.0')
    preparation.prepare([vgpu])
    assert vgpu.uuid in bench.mdevs()
    monitor.scan()

    shutil.rmtree(bench.host.root)
    fields = dict(sysfs_tree.fields_of('t4-mdev'))
    moved = renumber_buses(('3b', '5e'))(fields)
    sysfs_tree.build_from(moved, bench.host.root, 4)
    monitor.scan()
    assert vgpu.uuid not in bench.mdevs()
    HandleRepair(preparation, *state, stopping).repair_handles()
    mdev = bench.host.root / 'sys/bus/mdev/devices' / vgpu.uuid
    assert '0000:5e:00.0' in str(mdev.resolve())
    preparation.release([parts.cache.handles[vgpu.uuid].handle])
    assert vgpu.uuid not in bench.mdevs()
