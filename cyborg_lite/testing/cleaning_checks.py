# SPDX-License-Identifier: Apache-2.0
"""Conformance checks of cleaning, for drivers that are ``CleansHandles``.

The host of the bench must have free handles with a cleaning policy. The kernel of the
bench emulates the tools that the driver runs.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyborg_lite.agent.devices.cleaning import check_steps
from cyborg_lite.drivers.base import CleansHandles, Driver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.cleaning import MAX_PROOF
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.testing.driver_checks import (
    HOSTNAME,
    Bench,
    ConformanceError,
    discover,
    expect,
    read_files,
)
from cyborg_lite.testing.fault_injection import FaultKind, FaultyKernel, ProcessCrash
from cyborg_lite.testing.preparation_checks import build_handle

_MAX_CHANGES: Final = 64  # of one cleaning run


def check_clean_steps_are_declared(bench: Bench, root: Path) -> None:
    """Check that the steps are valid, the same at each call, and change nothing."""
    host = bench.host(root)
    driver = bench.make(host)
    for handle in _list_handles(driver):
        cleaning = _as_cleaning(driver)
        files = read_files(root)
        steps = tuple(cleaning.list_clean_steps(handle))
        try:
            check_steps(steps)
        except DriverError as error:
            raise ConformanceError(error.text) from error
        for step in steps:
            expect(bool(step.destroys), f'step {step.name} does not say what it loses')
        repeated_steps = tuple(cleaning.list_clean_steps(handle))
        expect(repeated_steps == steps, 'a second call declares other steps')
        expect(read_files(root) == files, 'list_clean_steps changes files of the host')


def check_clean_is_repeatable(bench: Bench, root: Path) -> None:
    """Check that all steps can run twice, and leave the same devices."""
    host = bench.host(root)
    driver = bench.make(host)
    before = discover(driver)
    for handle in _list_handles(driver):
        for successor in (driver, driver, bench.make(host)):
            for proof in _clean(successor, handle):
                is_text = isinstance(proof, str) and len(proof) <= MAX_PROOF
                message = f'a step must return text of at most {MAX_PROOF} characters'
                expect(is_text, message)
    expect(discover(driver) == before, 'a cleaning run changes the reported devices')


def check_failed_change_is_reported(bench: Bench, root: Path) -> None:
    """Check that a refused change raises DriverError, and that a retry succeeds."""
    for setup in _build_faulty_setups(bench, root, FaultKind.REFUSAL):
        driver = bench.make(setup.host)
        try:
            _clean(driver, setup.handle)
        except DriverError:
            _clean(driver, setup.handle)
            continue
        except Exception as error:
            # A driver under test may raise anything.
            raise ConformanceError(f'a refused change raises {error!r}') from error
        raise ConformanceError('a refused change raises no DriverError')


def check_crash_of_clean_is_recovered(bench: Bench, root: Path) -> None:
    """Check that a later process can clean what a crashed one has begun."""
    for fault in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER):
        for setup in _build_faulty_setups(bench, root / fault.name, fault):
            driver = bench.make(setup.host)
            before = discover(driver)
            with contextlib.suppress(ProcessCrash):
                _clean(driver, setup.handle)
            successor = bench.make(setup.host)
            _clean(successor, setup.handle)
            expect(discover(successor) == before, 'other devices after a crash')


CLEANING_CHECKS: Final[Sequence[Callable[[Bench, Path], None]]] = (
    check_clean_steps_are_declared,
    check_clean_is_repeatable,
    check_failed_change_is_reported,
    check_crash_of_clean_is_recovered,
)


@dataclass(frozen=True, slots=True)
class _Setup:
    """A new host whose kernel has a fault, and a handle to clean."""

    host: Host
    handle: AllocatedHandle


def _build_faulty_setups(
    bench: Bench, root: Path, fault: FaultKind
) -> Iterator[_Setup]:
    """Yield a setup for each change of a cleaning run, with the fault in it."""
    count = _count_changes(bench, root / 'count')
    expect(0 < count <= _MAX_CHANGES, f'a cleaning run makes {count} changes')
    for at in range(count):
        setup, kernel = _build_setup(bench, root / f'change-{at}')
        kernel.at, kernel.fault = at, fault
        yield setup


def _count_changes(bench: Bench, root: Path) -> int:
    """Return the number of changes that the cleaning run of one handle makes."""
    setup, kernel = _build_setup(bench, root)
    _clean(bench.make(setup.host), setup.handle)
    return kernel.changes


def _build_setup(bench: Bench, root: Path) -> tuple[_Setup, FaultyKernel]:
    root.mkdir(parents=True)
    kernel = FaultyKernel(bench.build(root))
    host = Host(HOSTNAME, root, kernel)
    handle = _list_handles(bench.make(host))[0]
    return _Setup(host, handle), kernel


def _list_handles(driver: Driver) -> list[AllocatedHandle]:
    """Return the free handles with a cleaning policy; at least one."""
    handles = [
        build_handle(result.device, deployable, handle)
        for result in discover(driver)
        if result.device is not None
        for deployable in result.device.root.walk()
        for handle in deployable.handles
        if handle.cleaning is not CleaningPolicy.NEVER and not handle.in_use
    ]
    expect(bool(handles), 'no handle on the host of the bench is cleaned')
    return handles


def _clean(driver: Driver, handle: AllocatedHandle) -> list[str]:
    """Run all steps and return their proofs."""
    cleaning = _as_cleaning(driver)
    abort = threading.Event()
    return [
        cleaning.run_clean_step(handle, step.name, abort)
        for step in cleaning.list_clean_steps(handle)
    ]


def _as_cleaning(driver: Driver) -> CleansHandles:
    expect(
        isinstance(driver, CleansHandles),
        'handles have a cleaning policy, but the driver has no cleaning steps',
    )
    assert isinstance(driver, CleansHandles)
    return driver
