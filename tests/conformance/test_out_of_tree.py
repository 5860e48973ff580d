# SPDX-License-Identifier: Apache-2.0
"""A package with one driver of each kind is installed by pip and passes the checks."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pytest

from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.host.kernel import Kernel
from cyborg_lite.drivers.loading import NAMESPACE
from cyborg_lite.testing.cleaning_checks import CLEANING_CHECKS
from cyborg_lite.testing.driver_checks import (
    CHECKS,
    Bench,
    check_file_faults_are_isolated,
)
from cyborg_lite.testing.mode_checks import MODE_CHECKS
from cyborg_lite.testing.preparation_checks import PREPARATION_CHECKS
from tests.doubles.file_driver import FileKernel
from tests.hosts.driver_benches import bench
from tests.hosts.kernel import FakeKernel
from tests.support.class_sizes import count_class_lines

Check = Callable[[Bench, Path], None]
Drivers = Mapping[str, type[Driver]]

PACKAGE: Final = Path(__file__).parents[1] / 'packages' / 'acme_accelerators'
CARDS: Final = {
    'acme_card_driver': 'nvme-ascend',
    'acme_sriov_driver': 'generic-pci',
    'acme_fpga_driver': 'fpga-xilinx-u250',
}
_CARD: Final = '0000:d9:00.0'


@pytest.fixture(scope='module')
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Install the package into a directory of its own; load its entry points."""
    site = str(tmp_path_factory.mktemp('site'))
    # A build leaves files in the directory of the package.
    sources = tmp_path_factory.mktemp('sources') / PACKAGE.name
    shutil.copytree(PACKAGE, sources)
    options = ['--no-index', '--no-deps', '--no-build-isolation', '--quiet']
    command = [sys.executable, '-m', 'pip', 'install', *options, '--target', site]
    subprocess.run([*command, str(sources)], check=True)
    sys.path.insert(0, site)
    try:
        yield {
            point.name: point.load()
            for point in metadata.entry_points(group=NAMESPACE)
            if point.name.startswith('acme_')
        }
    finally:
        sys.path.remove(site)


def build_blade_bench(kind: type[Driver]) -> Bench:
    def build(root: Path) -> Kernel:
        directory = root / 'srv/acme'
        directory.mkdir(parents=True)
        (directory / 'mode').write_text('dual')
        return FileKernel()

    return Bench(lambda host: kind(host, {'change_timeout': 1.0}), build)


def build_sriov_bench(kind: type[Driver]) -> Bench:
    """Return a bench of a card whose virtual functions do not exist yet."""
    options: dict[str, Any] = {'virtual_functions': [f'{_CARD}=4']}
    plain = bench(kind, 'generic-pci', **options)

    def build(root: Path) -> Kernel:
        kernel = FakeKernel('generic-pci', root, most_virtual=4)
        kernel.disable(_CARD)
        return kernel

    return Bench(plain.make, build)


def test_package_provides_one_driver_of_each_kind(drivers: Drivers) -> None:
    assert drivers.keys() == {*CARDS, 'acme_blade_driver'}
    assert {name: kind.NAME for name, kind in drivers.items()} == {
        name: name for name in drivers
    }


@pytest.mark.parametrize(
    ('name', 'limit'), [('acme_card_driver', 15), ('acme_sriov_driver', 40)]
)
def test_drivers_of_cards_are_small(name: str, limit: int, drivers: Drivers) -> None:
    assert count_class_lines(drivers[name]) <= limit


@pytest.mark.parametrize('check', CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize('name', CARDS)
def test_cards_pass_scan_checks(
    name: str, check: Check, drivers: Drivers, tmp_path: Path
) -> None:
    if name != 'acme_card_driver' and check is check_file_faults_are_isolated:
        pytest.skip('the same base class is checked on the same host elsewhere')
    check(bench(drivers[name], CARDS[name]), tmp_path)


@pytest.mark.parametrize('check', PREPARATION_CHECKS, ids=lambda check: check.__name__)
def test_sriov_card_passes_preparation_checks(
    check: Check, drivers: Drivers, tmp_path: Path
) -> None:
    check(build_sriov_bench(drivers['acme_sriov_driver']), tmp_path)


@pytest.mark.parametrize(
    'check',
    [*CHECKS, *PREPARATION_CHECKS, *CLEANING_CHECKS, *MODE_CHECKS],
    ids=lambda check: check.__name__,
)
def test_blade_passes_all_checks(
    check: Check, drivers: Drivers, tmp_path: Path
) -> None:
    check(build_blade_bench(drivers['acme_blade_driver']), tmp_path)
