# SPDX-License-Identifier: Apache-2.0
"""Every driver of the package passes the conformance suite, and bad ones do not."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from oslo_config import cfg

from cyborg_lite.drivers import kit, kit_preparing
from cyborg_lite.drivers.kit import Bench
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.model.inventory import Deployable, Device, Finding
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
