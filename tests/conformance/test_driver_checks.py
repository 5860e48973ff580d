# SPDX-License-Identifier: Apache-2.0
"""Driver checks accept all drivers of the package and reject wrong ones."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from oslo_config import cfg

from cyborg_lite.drivers.host.kernel import Writer, to_driver_error
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.functions import handle_info
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)
from cyborg_lite.testing import cleaning_checks, driver_checks, preparation_checks
from cyborg_lite.testing.driver_checks import Bench
from tests.doubles.file_driver import FileKernel
from tests.hosts.driver_benches import CLEANING, LOOKING, PREPARING
from tests.hosts.kernel import FakeKernel

Check = Callable[[Bench, Path], None]


def _name(check: Check) -> str:
    return check.__name__


@pytest.mark.parametrize('driver', LOOKING)
@pytest.mark.parametrize('check', driver_checks.CHECKS, ids=_name)
def test_scan_checks_pass_for_every_driver(
    check: Check, driver: str, tmp_path: Path
) -> None:
    is_absent = driver in ('Inspur FPGA', 'Gaudi')
    if is_absent and check is driver_checks.check_discovery_is_reportable:
        pytest.skip('no fabricated host has such a card')
    check(LOOKING[driver], tmp_path)


@pytest.mark.parametrize('driver', PREPARING)
@pytest.mark.parametrize('check', preparation_checks.PREPARATION_CHECKS, ids=_name)
def test_preparation_checks_pass_for_every_driver(
    check: Check, driver: str, tmp_path: Path
) -> None:
    check(PREPARING[driver], tmp_path)


@pytest.mark.parametrize('driver', CLEANING)
@pytest.mark.parametrize('check', cleaning_checks.CLEANING_CHECKS, ids=_name)
def test_cleaning_checks_pass_for_every_driver(
    check: Check, driver: str, tmp_path: Path
) -> None:
    check(CLEANING[driver], tmp_path)


class Plain:
    """Correct driver of two cards, which subclasses change."""

    NAME: ClassVar[str] = 'plain'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self.host = host

    def discover(self) -> Iterator[DiscoveryResult]:
        for function in self.host.pci_functions():
            if function.vendor:
                yield self.build_result(function)

    def build_result(self, function: PciFunction) -> DiscoveryResult:
        name = f'{self.host.name}_{function.address}'
        root = Deployable(name, 'CUSTOM_PCI', ('CUSTOM_X',), total=1)
        address = function.address
        device = Device('PCI', '10de', 'Card', 'X', address, address, root)
        return DiscoveryResult(address, function.ids, '', self.NAME, 'there', device)


class Fragile(Plain):
    """Driver that aborts a scan at one unreadable file."""

    def build_result(self, function: PciFunction) -> DiscoveryResult:
        int(function.text('class') or '', 16)
        return super().build_result(function)


class Shy(Plain):
    """Driver that omits an unusual card and all cards after it."""

    def discover(self) -> Iterator[DiscoveryResult]:
        for results in super().discover():
            if not PciFunction(self.host, results.address).pci_class:
                return
            yield results


@pytest.mark.parametrize(
    ('kind', 'check', 'words'),
    [
        (
            Fragile,
            driver_checks.check_file_faults_are_isolated,
            'fails: Value',
        ),
        (Shy, driver_checks.check_file_faults_are_isolated, 'hides 0000:'),
    ],
)
def test_wrong_scan_is_detected(
    kind: type[Plain], check: Check, words: str, tmp_path: Path
) -> None:
    def bench(driver_class: type[Plain]) -> Bench:
        return Bench(
            lambda host: driver_class(host, {}),
            lambda root: FakeKernel('t4-mdev', root),
        )

    check(bench(Plain), tmp_path / 'good')
    with pytest.raises(driver_checks.ConformanceError, match=words):
        check(bench(kind), tmp_path / 'bad')


class Slicing(Plain):
    """Driver that creates all slices of a card with the first handle."""

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.writer = Writer(host.root, host.kernel, 0.5)
        self.prepared_uuids: set[str] = set()

    def build_result(self, function: PciFunction) -> DiscoveryResult:
        results = super().build_result(function)
        assert results.device is not None
        info = handle_info(function.address)
        handles = tuple(
            AttachHandle(
                f'{function.address}/{n}', HandleType.PCI, info, needs_host=True
            )
            for n in range(2)
        )
        root = replace(results.device.root, total=2, handles=handles)
        return replace(results, device=replace(results.device, root=root))

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        self.prepared_uuids |= {handle.uuid for handle in handles}

    def prepare(self, handle: AllocatedHandle) -> None:
        self.writer.check(handle.control_address)
        if self.host.text(_slices(handle)) != '2':
            self.set(handle, '2')
        self.prepared_uuids.add(handle.uuid)

    def release(self, handle: AllocatedHandle) -> None:
        self.writer.check(handle.control_address)
        self.prepared_uuids.discard(handle.uuid)
        if not self.prepared_uuids and self.host.text(_slices(handle)) != '0':
            self.set(handle, '0')

    def set(self, handle: AllocatedHandle, text: str) -> None:
        try:
            self.writer.write(handle.control_address, _slices(handle), text)
        except OSError as error:
            raise to_driver_error(handle.control_address, 'slices', error) from None


class Forgetful(Slicing):
    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        """Release the handles of an earlier process as if nobody owned them."""


class Patient(Slicing):
    """Driver that changes the card without a time limit."""

    def set(self, handle: AllocatedHandle, text: str) -> None:
        try:
            self.host.kernel.write(self.host.root, _slices(handle), text)
        except OSError as error:
            raise to_driver_error(handle.control_address, 'slices', error) from None


class Slices(FileKernel):
    """Kernel with one file per card."""

    def __init__(self, root: Path) -> None:
        for address in ('0000:3b:00.0', '0000:af:00.0'):
            directory = root / f'sys/bus/pci/devices/{address}'
            directory.mkdir(parents=True)
            (directory / 'vendor').write_text('0x10de\n')
            (directory / 'sriov_numvfs').write_text('0\n')


def _slices(handle: AllocatedHandle) -> str:
    return f'sys/bus/pci/devices/{handle.control_address}/sriov_numvfs'


@pytest.mark.parametrize('check', preparation_checks.PREPARATION_CHECKS, ids=_name)
def test_correct_preparation_passes(check: Check, tmp_path: Path) -> None:
    check(Bench(lambda host: Slicing(host, {}), Slices), tmp_path)


@pytest.mark.parametrize(
    ('kind', 'check', 'words'),
    [
        (
            Forgetful,
            preparation_checks.check_release_is_isolated,
            'changes another',
        ),
        (Patient, preparation_checks.check_hang_is_reported, 'does not return'),
    ],
)
def test_wrong_preparation_is_detected(
    kind: type[Slicing],
    check: Check,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preparation_checks, '_TIMEOUT', 2.0)
    with pytest.raises(driver_checks.ConformanceError, match=words):
        check(Bench(lambda host: kind(host, {}), Slices), tmp_path)
