# SPDX-License-Identifier: Apache-2.0
"""Conformance checks of modes, for drivers that are ``SetsModes``.

The first device of the bench must have at least two modes. The host shows one of them,
and no guest uses the device.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.base import SetsModes
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.devices.modes import list_inventory
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.testing.cloud import Cloud, Scenario
from cyborg_lite.testing.crash_checks import check_all_points
from cyborg_lite.testing.driver_checks import (
    HOSTNAME,
    Bench,
    ConformanceError,
    discover,
    expect,
    read_files,
)
from cyborg_lite.testing.fault_injection import FaultKind, FaultyKernel

_MAX_CHANGES: Final = 32  # of one change of a mode


@dataclass(frozen=True, slots=True)
class _Setup:
    """A new host with a driver that has scanned it, and a device with modes."""

    host: Host
    kernel: FaultyKernel
    driver: SetsModes
    address: str

    def read_device(self) -> Device:
        """Scan the host and return the device."""
        for result in discover(self.driver):  # type: ignore[arg-type]  # also a Driver
            if result.address == self.address and result.device is not None:
                return result.device
        raise ConformanceError(f'device {self.address} is not reported any more')

    def list_current(self) -> list[str]:
        """Return the names of the modes that the device may have."""
        modes = self.driver.modes(self.read_device())
        return [mode.name for mode in modes if mode.is_current]


def check_modes_are_read_only(bench: Bench, root: Path) -> None:
    """Check that a list of modes is repeatable and changes no file."""
    setup = _build_setup(bench, root, FaultKind.NONE, 0)
    device, files = setup.read_device(), read_files(root)
    expect(
        setup.driver.modes(device) == setup.driver.modes(device),
        'a second list of modes differs',
    )
    expect(read_files(root) == files, 'a list of modes changes files of the host')
    expect(bool(setup.list_current()), 'no mode is current')


def check_set_mode_is_repeatable(bench: Bench, root: Path) -> None:
    """Check that each mode can be set twice, and offers what was planned."""
    setup = _build_setup(bench, root, FaultKind.NONE, 0)
    for mode in setup.driver.modes(setup.read_device()):
        for _ in range(2):
            device = setup.driver.set_mode(setup.read_device(), mode.name)
            expect(mode.name in setup.list_current(), f'{mode.name} is not current')
            expect(
                device == setup.read_device(),
                f'the device of {mode.name} differs from the next scan',
            )
            planned = {item for item in mode.inventory if item.total}
            expect(
                {item.resource_class for item in list_inventory(device.root)}
                == {item.resource_class for item in planned},
                f'{mode.name} offers other resource classes than planned',
            )


def check_failed_set_mode_is_undone(bench: Bench, root: Path) -> None:
    """Check that the previous mode can be set after a failure of any step."""
    for setup in _build_faulty_setups(bench, root):
        before, previous = setup.read_device(), setup.list_current()[0]
        target = _find_other_mode(setup)
        try:
            setup.driver.set_mode(before, target)
        except DriverError:
            pass
        else:
            message = 'a refused change raises no DriverError'
            expect(target in setup.list_current(), message)
        if setup.kernel.changes <= setup.kernel.at:
            return  # no change was refused
        setup.kernel.fault = FaultKind.NONE
        setup.driver.set_mode(setup.read_device(), previous)
        expect(previous in setup.list_current(), f'{previous} cannot be set again')
        expect(
            list_inventory(setup.read_device().root) == list_inventory(before.root),
            'the device offers something else after the failure',
        )


def check_mode_change_survives_crashes(scenario: Scenario, root: Path) -> None:
    """Check that a mode is set and its device offered, after a crash at any step."""

    def compare(results: str, expected: str) -> None:
        expect(results == expected, 'the results differ from those without a crash')

    check_all_points(scenario, root, _change_mode, compare)


MODE_CHECKS: Final[Sequence[Callable[[Bench, Path], None]]] = (
    check_modes_are_read_only,
    check_set_mode_is_repeatable,
    check_failed_set_mode_is_undone,
)


def _change_mode(cloud: Cloud) -> str:
    """Change the mode of the first device; return the results of the host as text."""
    (listing, *_) = cloud.host.agent.modes.list_modes()
    target = next(mode.name for mode in listing.modes if not mode.is_current)
    with cloud.crash_point.activate():
        cloud.change_mode(target)
    results = cloud.discover()
    (listing, *_) = cloud.host.agent.modes.list_modes()
    current = [mode.name for mode in listing.modes if mode.is_current]
    expect(target in current, f'the mode is {current} instead of {target}')
    expect(listing.stored == target, f'the agent restores {listing.stored}')
    reasons = [
        device.status_reason
        for device in cloud.list_devices()
        if device.status is not DeviceStatus.ENABLED
    ]
    expect(not reasons, f'a device is not offered again: {", ".join(reasons)}')
    return repr(results)


def _build_faulty_setups(bench: Bench, root: Path) -> Iterator[_Setup]:
    """Yield new hosts: the kernel of number N refuses its change number N."""
    for number in range(_MAX_CHANGES):
        directory = root / f'change-{number}'
        yield _build_setup(bench, directory, FaultKind.REFUSAL, number)


def _build_setup(bench: Bench, root: Path, fault: FaultKind, at: int) -> _Setup:
    root.mkdir(parents=True, exist_ok=True)
    kernel = FaultyKernel(bench.build(root), fault, at)
    host = Host(HOSTNAME, root, kernel)
    driver = bench.make(host)
    if not isinstance(driver, SetsModes):
        raise ConformanceError('the driver has no modes and set_mode')
    for result in discover(driver):
        if result.device is not None and len(driver.modes(result.device)) > 1:
            return _Setup(host, kernel, driver, result.address)
    raise ConformanceError('no device on the host of the bench has two modes')


def _find_other_mode(setup: _Setup) -> str:
    current = setup.list_current()
    modes = setup.driver.modes(setup.read_device())
    return next(mode.name for mode in modes if mode.name not in current)
