# SPDX-License-Identifier: Apache-2.0
"""Every driver of the package passes the conformance suite, and bad ones do not."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from oslo_config import cfg

from cyborg_lite.drivers import kit, kit_preparing
from cyborg_lite.drivers.kernel import Writer, refusal
from cyborg_lite.drivers.kit import Bench
from cyborg_lite.drivers.pci import handle_info
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Deployable, Device, Finding, HandleType, Unit
from tests.fakes.kernel import FakeKernel
from tests.unit.drivers.benches import LOOKING, PREPARING

Check = Callable[[Bench, Path], None]


def _name(check: Check) -> str:
    return check.__name__


@pytest.mark.parametrize('driver', LOOKING)
@pytest.mark.parametrize('check', kit.CHECKS, ids=_name)
def test_every_driver_looks_as_it_must(
    check: Check, driver: str, tmp_path: Path
) -> None:
    if driver == 'Inspur FPGA' and check is kit.discovery_finds_what_can_be_reported:
        pytest.skip('no fabricated host has such a card')
    check(LOOKING[driver], tmp_path)


@pytest.mark.parametrize('driver', PREPARING)
@pytest.mark.parametrize('check', kit_preparing.PREPARING_CHECKS, ids=_name)
def test_every_driver_prepares_as_it_must(
    check: Check, driver: str, tmp_path: Path
) -> None:
    check(PREPARING[driver], tmp_path)


class Plain:
    """Finds two cards and does nothing wrong, until a test has it otherwise."""

    NAME: ClassVar[str] = 'plain'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self.host = host
        self.looks = 0

    def discover(self) -> Iterator[Finding]:
        self.looks += 1
        for function in self.host.pci_functions():
            if function.vendor:
                yield self.finding(function)

    def finding(self, function: PciFunction) -> Finding:
        name = f'{self.host.name}_{function.address}'
        root = Deployable(name, 'CUSTOM_PCI', ('CUSTOM_X',), total=1)
        address = function.address
        device = Device('PCI', '10de', 'Card', 'X', address, address, root)
        return Finding(address, function.ids, '', self.NAME, 'there', device)


class Restless(Plain):
    def discover(self) -> Iterator[Finding]:
        found = list(super().discover())
        yield from found[: self.looks]


class Fickle(Plain):
    def discover(self) -> Iterator[Finding]:
        os.system('true')
        yield from super().discover()


class Scribbling(Plain):
    def discover(self) -> Iterator[Finding]:
        (self.host.root / 'scribble').touch()
        yield from super().discover()


class Misnamed(Plain):
    def finding(self, function: PciFunction) -> Finding:
        found = super().finding(function)
        assert found.device is not None
        root = replace(found.device.root, name=function.address)
        return replace(found, device=replace(found.device, root=root))


class Counting(Plain):
    """Nova calls methods of text on what it is given."""

    def finding(self, function: PciFunction) -> Finding:
        found = super().finding(function)
        assert found.device is not None
        info: Any = {**handle_info(function.address), 'function': 0}
        units = (Unit(function.address, HandleType.PCI, info),)
        root = replace(found.device.root, units=units)
        return replace(found, device=replace(found.device, root=root))


class Fragile(Plain):
    """One bad file, and it gives up."""

    def finding(self, function: PciFunction) -> Finding:
        int(function.text('class') or '', 16)
        return super().finding(function)


class Shy(Plain):
    """Of a card that is odd it is silent, and of all after it."""

    def discover(self) -> Iterator[Finding]:
        for found in super().discover():
            if not PciFunction(self.host, found.address).pci_class:
                return
            yield found


@pytest.mark.parametrize(
    ('kind', 'check', 'words'),
    [
        (Restless, kit.discovery_can_be_repeated, 'a second look finds something'),
        (
            Fickle,
            kit.discovery_only_reads,
            'must not: os.system',
        ),
        (Scribbling, kit.discovery_only_reads, 'changes files of the host'),
        (Misnamed, kit.discovery_finds_what_can_be_reported, 'is not named for host'),
        (Counting, kit.discovery_finds_what_can_be_reported, 'that are no text'),
        (
            Fragile,
            kit.no_fault_in_a_file_hides_another_device,
            'fails: Value',
        ),
        (Shy, kit.no_fault_in_a_file_hides_another_device, 'hides 0000:'),
    ],
)
def test_a_driver_that_does_wrong_is_caught(
    kind: type[Plain], check: Check, words: str, tmp_path: Path
) -> None:
    def bench(made: type[Plain]) -> Bench:
        return Bench(
            lambda host: made(host, {}), lambda root: FakeKernel('t4-mdev', root)
        )

    check(bench(Plain), tmp_path / 'good')
    with pytest.raises(kit.Nonconforming, match=words):
        check(bench(kind), tmp_path / 'bad')


@pytest.mark.parametrize('check', kit_preparing.PREPARING_CHECKS, ids=_name)
def test_a_driver_that_prepares_nothing_is_caught(check: Check, tmp_path: Path) -> None:
    bench = Bench(
        lambda host: Plain(host, {}), lambda root: FakeKernel('t4-mdev', root)
    )
    with pytest.raises(kit.Nonconforming, match='no unit'):
        check(bench, tmp_path)


class Slicing(Plain):
    """Cards in slices, all of them made with the first and removed after the last."""

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.writer = Writer(host.root, host.kernel, 0.5)
        self.held: set[str] = set()

    def finding(self, function: PciFunction) -> Finding:
        found = super().finding(function)
        assert found.device is not None
        info = handle_info(function.address)
        units = tuple(
            Unit(f'{function.address}/{n}', HandleType.PCI, info, needs_host=True)
            for n in range(2)
        )
        root = replace(found.device.root, total=2, units=units)
        return replace(found, device=replace(found.device, root=root))

    def recall(self, handles: Iterable[HeldHandle]) -> None:
        self.held |= {handle.uuid for handle in handles}

    def prepare(self, handle: HeldHandle) -> None:
        self.writer.check(handle.address)
        if self.host.text(_slices(handle)) != '2':
            self.set(handle, '2')
        self.held.add(handle.uuid)

    def release(self, handle: HeldHandle) -> None:
        self.writer.check(handle.address)
        self.held.discard(handle.uuid)
        if not self.held and self.host.text(_slices(handle)) != '0':
            self.set(handle, '0')

    def set(self, handle: HeldHandle, text: str) -> None:
        try:
            self.writer.write(handle.address, _slices(handle), text)
        except OSError as error:
            raise refusal(handle.address, 'slices', error) from None


class Forgetful(Slicing):
    def recall(self, handles: Iterable[HeldHandle]) -> None:
        """It takes what an earlier process made for nobody's."""


class Greedy(Slicing):
    def release(self, handle: HeldHandle) -> None:
        self.held.clear()
        super().release(handle)


class Silent(Slicing):
    def set(self, handle: HeldHandle, text: str) -> None:
        with suppress(OSError):
            self.writer.write(handle.address, _slices(handle), text)


class Patient(Slicing):
    def set(self, handle: HeldHandle, text: str) -> None:
        try:
            self.host.kernel.write(self.host.root, _slices(handle), text)
        except OSError as error:
            raise refusal(handle.address, 'slices', error) from None


class Slices:
    """A kernel with one file for each card."""

    def __init__(self, root: Path) -> None:
        for address in ('0000:3b:00.0', '0000:af:00.0'):
            directory = root / f'sys/bus/pci/devices/{address}'
            directory.mkdir(parents=True)
            (directory / 'vendor').write_text('0x10de\n')
            (directory / 'sriov_numvfs').write_text('0\n')

    def write(self, root: Path, path: str, text: str) -> None:
        (root / path).write_text(f'{text}\n')

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        raise FileNotFoundError

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        raise FileNotFoundError

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return []


def _slices(handle: HeldHandle) -> str:
    return f'sys/bus/pci/devices/{handle.address}/sriov_numvfs'


@pytest.mark.parametrize('check', kit_preparing.PREPARING_CHECKS, ids=_name)
def test_a_driver_that_prepares_well_passes(check: Check, tmp_path: Path) -> None:
    check(Bench(lambda host: Slicing(host, {}), Slices), tmp_path)


@pytest.mark.parametrize(
    ('kind', 'check', 'words'),
    [
        (Forgetful, kit_preparing.one_release_leaves_the_others, 'changes another'),
        (Greedy, kit_preparing.one_release_leaves_the_others, 'changes another'),
        (Silent, kit_preparing.a_refusal_leaves_nothing_behind, 'is not told'),
        (Patient, kit_preparing.a_hang_is_given_up, 'does not return'),
    ],
)
def test_a_driver_that_prepares_badly_is_caught(
    kind: type[Slicing],
    check: Check,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kit_preparing, '_PATIENCE', 2.0)
    with pytest.raises(kit.Nonconforming, match=words):
        check(Bench(lambda host: kind(host, {}), Slices), tmp_path)
