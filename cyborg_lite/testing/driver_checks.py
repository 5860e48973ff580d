# SPDX-License-Identifier: Apache-2.0
"""Conformance checks of discovery, for every driver.

The tests of a driver call each of ``CHECKS`` with a ``Bench`` and an empty directory. A
failed check raises ``ConformanceError`` with the fault. No test runner is needed.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.base import DeclaresAttributes, Driver
from cyborg_lite.drivers.host.kernel import Kernel
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.inventory import report_rules, typed_attributes
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Device,
    DiscoveryResult,
    HostReport,
)
from cyborg_lite.testing.fault_injection import (
    FILE_FAULTS,
    FaultyHost,
    RecordingHost,
    build_fault_files,
)

HOSTNAME: Final = 'kit-host'
_TRAIT: Final = re.compile('[A-Z0-9_]{1,255}')
_ADDRESS: Final = re.compile(r'[0-9a-f]{4,}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]')
# Audit events of the interpreter (Python library reference, "Audit events table").
_FORBIDDEN: Final = frozenset(
    {'subprocess.Popen', 'os.system', 'os.fork', 'os.forkpty', 'os.posix_spawn'}
    | {'os.exec', 'socket.connect'}
)


class ConformanceError(AssertionError):
    """A driver violates the contract; the text names the fault."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A driver and an emulated host for it, which can be built repeatedly."""

    make: Callable[[Host], Driver]
    """Creates the driver with options that suit the host."""
    build: Callable[[Path], Kernel]
    """Writes the files of the host into an empty directory. The kernel that it returns
    changes these files as a real kernel would when the driver writes to it."""

    def host(self, root: Path) -> Host:
        """Build the host in a directory, which is created if needed."""
        root.mkdir(parents=True, exist_ok=True)
        return Host(HOSTNAME, root, self.build(root))


def check_discovery_is_repeatable(bench: Bench, root: Path) -> None:
    """Check that an unchanged host gives the same results to two drivers."""
    host = bench.host(root)
    driver = bench.make(host)
    first = discover(driver)
    expect(discover(driver) == first, 'a second scan gives other results')
    expect(discover(bench.make(host)) == first, 'a second driver gives other results')


def check_discovery_is_reportable(bench: Bench, root: Path) -> None:
    """Check that the host gives results, and that the conductor accepts them."""
    results = discover(bench.make(bench.host(root)))
    expect(bool(results), 'discovery gives no results on the host of the bench')
    check_results(results)


def check_discovery_is_read_only(bench: Bench, root: Path) -> None:
    """Check that discovery starts no process, uses no network and writes no file."""
    host = bench.host(root)
    driver = bench.make(host)
    files = read_files(root)
    with _record_events() as events:
        discover(driver)
    expect(not events, f'discovery raises forbidden events: {", ".join(events)}')
    expect(read_files(root) == files, 'discovery changes files of the host')


def check_empty_host_is_accepted(bench: Bench, root: Path) -> None:
    """Check that discovery does not fail on a host without any file."""
    check_results(discover(bench.make(Host(HOSTNAME, root))))


def check_attributes_are_declared(bench: Bench, root: Path) -> None:
    """Check that the driver declares the typed attributes that it reports."""
    driver = bench.make(bench.host(root))
    declarations = driver.ATTRIBUTES if isinstance(driver, DeclaresAttributes) else ()
    names = [declaration.name for declaration in declarations]
    expect(len(set(names)) == len(names), 'an attribute is declared twice')
    for declaration in declarations:
        fault = typed_attributes.find_declaration_fault(declaration)
        expect(fault is None, f'invalid declaration of an attribute: {fault}')
    for result in discover(driver):
        for deployable in result.device.root.walk() if result.device else ():
            for attribute in deployable.typed_attributes:
                is_declared = any(item.covers(attribute) for item in declarations)
                message = f'{deployable.name} has an undeclared {attribute.name}'
                expect(is_declared, message)


def check_file_faults_are_isolated(bench: Bench, root: Path) -> None:
    """Check that a faulty file of one device does not hide another device."""
    kernel = bench.build(root)
    fault_files = root / 'faults'
    build_fault_files(fault_files)
    recording = RecordingHost(HOSTNAME, root, kernel)
    addresses = {result.address for result in discover(bench.make(recording))}
    for path in _list_representatives(recording.paths):
        concerned = set(_ADDRESS.findall(path))
        observations = set()
        for fault in FILE_FAULTS:
            host = FaultyHost(HOSTNAME, root, kernel, path, fault, fault_files)
            # A driver cannot distinguish faults that `Host` presents in the same way.
            observation = _observe(host, path)
            if observation in observations:
                continue
            observations.add(observation)
            results = discover(bench.make(host))
            check_results(results)
            hidden = addresses - {result.address for result in results} - concerned
            # A directory that lists devices belongs to no device: faults in it may
            # hide all of them.
            expect(
                not (hidden and concerned),
                f'{fault} {path} hides {", ".join(sorted(hidden))}',
            )


CHECKS: Final[Sequence[Callable[[Bench, Path], None]]] = (
    check_discovery_is_repeatable,
    check_discovery_is_reportable,
    check_discovery_is_read_only,
    check_empty_host_is_accepted,
    check_attributes_are_declared,
    check_file_faults_are_isolated,
)


def discover(driver: Driver) -> tuple[DiscoveryResult, ...]:
    """Return the results of one scan.

    :raises ConformanceError: the driver raised an exception
    """
    try:
        return tuple(driver.discover())
    except Exception as error:
        # A driver under test may raise anything.
        raise ConformanceError(f'discovery fails: {error!r}') from error


def check_results(results: Sequence[DiscoveryResult]) -> None:
    """Check the results of one scan.

    :raises ConformanceError: the conductor, Placement or Nova would refuse them
    """
    addresses = [result.address for result in results]
    expect(len(set(addresses)) == len(addresses), 'a function is reported twice')
    expect(all(result.reason for result in results), 'a result has no reason')
    devices = tuple(result.device for result in results if result.device)
    for handle in _list_handles(devices):
        is_text = all(isinstance(value, str) for value in handle.info.values())
        expect(is_text, f'handle {handle.key} has info values that are not strings')
    try:
        report_rules.check_report(HostReport(HOSTNAME, '', devices))
    except InvalidInput as error:
        raise ConformanceError(error.text) from error
    for deployable in (item for device in devices for item in device.root.walk()):
        for trait in deployable.traits:
            expect(bool(_TRAIT.fullmatch(trait)), f'{trait} is not a valid trait')
        expect(
            deployable.reserved <= deployable.total,
            f'{deployable.name} reserves more than its total',
        )
    for handle in _list_handles(devices):
        has_prefix = any(value.startswith('0x') for value in handle.info.values())
        expect(not has_prefix, f'handle {handle.key} has info values with 0x')


def expect(condition: bool, message: str) -> None:
    """Check a condition.

    :raises ConformanceError: it is False
    """
    if not condition:
        raise ConformanceError(message)


def _list_handles(devices: Sequence[Device]) -> Iterator[AttachHandle]:
    for device in devices:
        for deployable in device.root.walk():
            yield from deployable.handles


def _observe(host: Host, path: str) -> tuple[object, ...]:
    """Return what a driver can learn about a path."""
    header = host.raw(path, 64) if path.endswith('/config') else None
    has_target = host.target(path) is not None
    return host.text(path), host.names(path), host.has(path), has_target, header


def _list_representatives(paths: Sequence[str]) -> Iterator[str]:
    """Yield the first of all paths that differ in numbers and addresses only."""
    patterns = {
        re.sub(r'\d+', '#', _ADDRESS.sub('#', path)): path for path in reversed(paths)
    }
    yield from patterns.values()


def read_files(root: Path) -> dict[str, bytes]:
    """Return the content of all regular files of a host, by path."""
    return {
        str(path): path.read_bytes()
        for path in sorted(root.rglob('*'))
        if path.is_file() and not path.is_symlink()
    }


_recordings: list[list[str]] = []  # one list per active _record_events


def _record_event(event: str, arguments: tuple[object, ...]) -> None:
    if event in _FORBIDDEN and not _is_local(event, arguments):
        for events in _recordings:
            events.append(event)


def _is_local(event: str, arguments: tuple[object, ...]) -> bool:
    """Return True for a connection to a socket of the host, whose address is a path."""
    return event == 'socket.connect' and isinstance(arguments[1], str | bytes)


@contextmanager
def _record_events() -> Iterator[list[str]]:
    """Record the forbidden events of all threads during the block."""
    global _has_hook
    if not _has_hook:
        sys.addaudithook(_record_event)  # a hook cannot be removed
        _has_hook = True
    events: list[str] = []
    _recordings.append(events)
    try:
        yield events
    finally:
        _recordings.remove(events)


_has_hook = False
