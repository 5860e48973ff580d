# SPDX-License-Identifier: Apache-2.0
"""The conformance suite: what every driver must do, in or out of this tree.

A driver's own tests call each of ``CHECKS`` with a ``Bench`` and an empty directory. A
check that fails raises ``Nonconforming`` with what was wrong. Nothing here needs a
test runner.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.kernel import Kernel
from cyborg_lite.drivers.kit_faults import FAULTS, FaultyHost, WatchedHost
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model import report_rules
from cyborg_lite.model.inventory import Device, Finding, HostReport, Unit

HOSTNAME: Final = 'kit-host'
_TRAIT: Final = re.compile('[A-Z0-9_]{1,255}')
_ADDRESS: Final = re.compile(r'[0-9a-f]{4,}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]')
_FORBIDDEN: Final = frozenset(
    {'subprocess.Popen', 'os.system', 'os.fork', 'os.forkpty', 'os.posix_spawn'}
    | {'os.exec', 'socket.connect'}
)


class Nonconforming(AssertionError):
    """What a driver does and must not, or the other way round."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A driver, and a host for it that can be built as often as need be."""

    make: Callable[[Host], Driver]
    """Makes the driver with the options that suit the host."""
    build: Callable[[Path], Kernel]
    """Writes the tree of the host into an empty directory. What it answers changes
    that tree as the kernel would, when the driver writes to it."""

    def host(self, root: Path) -> Host:
        root.mkdir(parents=True, exist_ok=True)
        return Host(HOSTNAME, root, self.build(root))


def discovery_can_be_repeated(bench: Bench, root: Path) -> None:
    """The same host gives the same findings, to the same driver and to a new one."""
    host = bench.host(root)
    driver = bench.make(host)
    first = findings(driver)
    expect(findings(driver) == first, 'a second look finds something else')
    expect(findings(bench.make(host)) == first, 'another instance finds something else')


def discovery_finds_what_can_be_reported(bench: Bench, root: Path) -> None:
    """Each finding has its reason and is about one function; devices are well made."""
    found = findings(bench.make(bench.host(root)))
    expect(bool(found), 'nothing is found on the host of the bench')
    check_form(found)


def discovery_only_reads(bench: Bench, root: Path) -> None:
    """No process is started, no connection made, no file of the host changed."""
    host = bench.host(root)
    driver = bench.make(host)
    before = snapshot(root)
    with _watched() as events:
        findings(driver)
    expect(not events, f'discovery does what it must not: {", ".join(events)}')
    expect(snapshot(root) == before, 'discovery changes files of the host')


def an_empty_host_is_no_error(bench: Bench, root: Path) -> None:
    """Without ``sys`` nothing is found, or only what needs no hardware."""
    check_form(findings(bench.make(Host(HOSTNAME, root))))


def no_fault_in_a_file_hides_another_device(bench: Bench, root: Path) -> None:
    """A file that is missing, cannot be read or holds garbage costs its own device."""
    kernel = bench.build(root)
    watched = WatchedHost(HOSTNAME, root, kernel)
    addresses = {each.address for each in findings(bench.make(watched))}
    for path in _of_each_kind(watched.seen):
        concerned = set(_ADDRESS.findall(path))
        for fault in FAULTS:
            host = FaultyHost(HOSTNAME, root, kernel, path, fault)
            found = findings(bench.make(host))
            check_form(found)
            # A directory that lists devices is no file of any of them.
            missing = addresses - {each.address for each in found} - concerned
            expect(
                not (missing and concerned),
                f'{fault} {path} hides {", ".join(sorted(missing))}',
            )


CHECKS: Final[Sequence[Callable[[Bench, Path], None]]] = (
    discovery_can_be_repeated,
    discovery_finds_what_can_be_reported,
    discovery_only_reads,
    an_empty_host_is_no_error,
    no_fault_in_a_file_hides_another_device,
)


def findings(driver: Driver) -> tuple[Finding, ...]:
    """What one look finds.

    :raises Nonconforming: it fails
    """
    try:
        return tuple(driver.discover())
    except Exception as error:
        # Any driver may come to the bench, and each may fail in its own way.
        raise Nonconforming(f'discovery fails: {error!r}') from error


def check_form(found: Sequence[Finding]) -> None:
    """:raises Nonconforming: the conductor would refuse it, or Placement or Nova"""
    addresses = [each.address for each in found]
    expect(len(set(addresses)) == len(addresses), 'a function is judged twice')
    expect(all(each.reason for each in found), 'a finding has no reason')
    devices = tuple(each.device for each in found if each.device)
    for unit in _units(devices):
        texts = all(isinstance(value, str) for value in unit.info.values())
        expect(texts, f'unit {unit.key} has values that are no text')
    try:
        report_rules.check(HostReport(HOSTNAME, '', devices))
    except InvalidInput as error:
        raise Nonconforming(error.text) from error
    for deployable in (part for each in devices for part in each.root.walk()):
        for trait in deployable.traits:
            expect(bool(_TRAIT.fullmatch(trait)), f'{trait} is no trait')
        expect(
            deployable.reserved <= deployable.total, f'{deployable.name} has too little'
        )
    for unit in _units(devices):
        prefixed = any(value.startswith('0x') for value in unit.info.values())
        expect(not prefixed, f'unit {unit.key} has numbers that begin with 0x')


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Nonconforming(otherwise)


def _units(devices: Sequence[Device]) -> Iterator[Unit]:
    for device in devices:
        for deployable in device.root.walk():
            yield from deployable.units


def _of_each_kind(paths: Sequence[str]) -> Iterator[str]:
    """One of the files that are alike but for the numbers in their paths."""
    kinds = {
        re.sub(r'\d+', '#', _ADDRESS.sub('#', path)): path for path in reversed(paths)
    }
    yield from kinds.values()


def snapshot(root: Path) -> dict[str, bytes]:
    """All files of a host, as they are now."""
    return {
        str(path): path.read_bytes()
        for path in sorted(root.rglob('*'))
        if path.is_file() and not path.is_symlink()
    }


_watching: list[list[str]] = []  # the lists that events are written to


def _hear(event: str, _arguments: object) -> None:
    if event in _FORBIDDEN:
        for events in _watching:
            events.append(event)


@contextmanager
def _watched() -> Iterator[list[str]]:
    """Hears what the interpreter does in any thread meanwhile."""
    global _hearing
    if not _hearing:
        sys.addaudithook(_hear)  # there is no way to take it out again
        _hearing = True
    events: list[str] = []
    _watching.append(events)
    try:
        yield events
    finally:
        _watching.remove(events)


_hearing = False
