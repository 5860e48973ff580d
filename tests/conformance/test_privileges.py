# SPDX-License-Identifier: Apache-2.0
"""The privileges files of the repository suffice for the drivers, and for no more."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cyborg_lite.drivers.base import Driver, SetsModes
from cyborg_lite.drivers.fpga.loading import ProgrammableFpgaDriver
from cyborg_lite.drivers.host import privileges
from cyborg_lite.drivers.host.kernel import Kernel
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.pci.generic import GenericPci
from cyborg_lite.drivers.storage.nvme import NvmeDrive
from cyborg_lite.testing import preparation_checks
from cyborg_lite.testing.driver_checks import Bench
from tests.hosts.driver_benches import LOADING, MODES, PREPARING
from tests.hosts.fixture_drivers import DRIVERS
from tests.hosts.privileged_process import PRIVILEGES, install_privileges

_IMAGE = Path('/var/lib/cyborg-lite/images/5e1f-0a.bin')
_FILES = sorted(PRIVILEGES.iterdir())
# The driver of SPDK changes no file: it sends requests to the socket of SPDK. The ports
# of a group need no change.
_PRIVILEGED = [name for name in PREPARING if name not in ('SPDK', 'NIC groups')]


@dataclass
class RecordingKernel:
    """Emulated kernel that records each change as the privileged process checks it."""

    real: Kernel
    writes: list[tuple[str, str]] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=list)
    tools: list[list[str]] = field(default_factory=list)  # without their directories

    def write(self, root: Path, path: str, text: str) -> None:
        location = (root / path).resolve()
        self.writes.append((f'/{location.relative_to(root.resolve())}', text))
        self.real.write(root, path, text)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        self.commands.append([f'/{tool}', *arguments])
        return self.real.run(root, tool, arguments)

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        self.tools.append(list(command))
        return self.real.load(command, seconds)

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return self.real.holders(root, files)


def _read(driver: Driver) -> privileges.Privileges:
    """Return the lines for a driver; its cards are those of an emulated host."""
    lines = (PRIVILEGES / f'{driver.NAME}.conf').read_text().splitlines()
    permissions = (line for line in lines if not line.startswith('cards '))
    return privileges.parse('\n'.join(permissions))


@pytest.mark.parametrize('name', _PRIVILEGED)
def test_privileges_file_allows_changes_of_driver(name: str, tmp_path: Path) -> None:
    kernels: list[RecordingKernel] = []
    drivers: list[Driver] = []

    def build(root: Path) -> Kernel:
        kernels.append(RecordingKernel(PREPARING[name].build(root)))
        return kernels[-1]

    def make(host: Host) -> Driver:
        drivers.append(PREPARING[name].make(host))
        return drivers[-1]

    bench = Bench(make, build)
    preparation_checks.check_prepare_is_repeatable(bench, tmp_path / 'handles')
    preparation_checks.check_group_is_repeatable(bench, tmp_path / 'groups')
    writes = [write for kernel in kernels for write in kernel.writes]
    commands = [command for kernel in kernels for command in kernel.commands]
    allowed = _read(drivers[0])
    assert writes or commands
    assert [write for write in writes if not allowed.allows_write(*write)] == []
    for tool, *arguments in commands:
        assert allowed.allows_run(tool, arguments)


@pytest.mark.parametrize('name', MODES)
def test_privileges_file_allows_changes_of_modes(name: str, tmp_path: Path) -> None:
    kernel = RecordingKernel(MODES[name].build(tmp_path))
    driver = MODES[name].make(Host('kit-host', tmp_path, kernel))
    assert isinstance(driver, SetsModes)
    for device in [result.device for result in driver.discover() if result.device]:
        # The first mode is set again to undo the change.
        for mode in [*driver.modes(device)[:2], *driver.modes(device)[:1]]:
            driver.set_mode(device, mode.name)
    allowed = _read(driver)
    for name, *arguments in kernel.tools:
        (path,) = allowed.list_tools(name)
        kernel.commands.append([path, *arguments])
    assert kernel.writes or kernel.commands
    denied = [write for write in kernel.writes if not allowed.allows_write(*write)]
    assert denied == []
    for tool, *arguments in kernel.commands:
        assert allowed.allows_run(tool, arguments)


@pytest.mark.parametrize('name', LOADING)
def test_privileges_file_allows_load_command(name: str, tmp_path: Path) -> None:
    host = LOADING[name].host(tmp_path)
    driver = LOADING[name].make(host)
    assert isinstance(driver, ProgrammableFpgaDriver)
    allowed = _read(driver)
    commands = []
    for function in host.pci_functions():
        if driver.is_card_function(function):
            card = driver.read_card(function)
            commands += [driver.build_command(card, r, _IMAGE) for r in card.regions]
            commands.append(driver.build_shell_command(card, _IMAGE))
    assert any(commands)
    for tool, *arguments in filter(None, commands):
        paths = [tool] if '/' in tool else list(allowed.list_tools(tool))
        assert any(allowed.allows_run(path, arguments) for path in paths)
        assert not any(allowed.allows_run(path, [*arguments, '-x']) for path in paths)


@pytest.mark.parametrize('file', _FILES, ids=lambda file: file.name)
def test_privileges_file_is_valid_and_named_for_driver(file: Path) -> None:
    allowed = privileges.parse(file.read_text())
    assert allowed.files or allowed.tools
    assert file.stem in (PRIVILEGES.parents[1] / 'setup.cfg').read_text()
    path = '/sys/devices/pci0000:00/0000:00:01.0/remove'
    assert not allowed.allows_write(path, '1')
    assert not allowed.allows_run('/opt/xilinx/xrt/bin/xbmgmt', ['program', '--base'])


@pytest.mark.parametrize('kind', [d for d in DRIVERS if issubclass(d, PciDriver)])
def test_privileges_file_names_cards_of_driver(kind: type[PciDriver]) -> None:
    path = PRIVILEGES / f'{kind.NAME}.conf'
    if not path.exists() or kind in (GenericPci, NvmeDrive):
        return  # the operator selects the cards
    allowed = privileges.parse(path.read_text())
    own = getattr(kind, 'VENDOR', None)
    vendors = {own} if own else {ids[:4] for ids in kind.MODELS}
    sets = {item.cards for item in allowed.files}
    sets |= {item.cards for item in allowed.tools}
    (cards,) = sets
    assert {vendor for vendor, _ in cards} == vendors
    assert all(name.startswith(cards[0][1]) for name in kind.CLASSES)


def test_privileges_files_are_all_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install_privileges(tmp_path)
    assert privileges.load(str(tmp_path)).tools
    assert caplog.text == ''
