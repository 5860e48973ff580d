# SPDX-License-Identifier: Apache-2.0
"""Conformance checks of handle preparation, for drivers that are ``PreparesHandles``.

The host of the bench must have handles with ``needs_host``. The options that the bench
passes to the driver should let a change time out within one second.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.base import (
    ActivatesGroups,
    ChecksHandles,
    ConnectsHandles,
    Driver,
    PreparesHandles,
    TracksHandles,
)
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DeviceHangs, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
)
from cyborg_lite.testing.driver_checks import (
    HOSTNAME,
    Bench,
    ConformanceError,
    discover,
    expect,
    read_files,
)
from cyborg_lite.testing.fault_injection import FaultKind, FaultyKernel, ProcessCrash

_MAX_CHANGES: Final = 32  # of one prepare or release
_TIMEOUT: Final = 30.0  # seconds until a blocked change must be reported


@dataclass(frozen=True, slots=True)
class _Setup:
    """A new host with a driver that has scanned it, and a handle to prepare."""

    host: Host
    kernel: FaultyKernel
    driver: Driver
    handle: AllocatedHandle
    neighbor: AllocatedHandle | None  # of the same deployable; None: it has only one

    def prepare(self, driver: Driver) -> None:
        _as_preparing(driver).prepare(self.handle)

    def release(self, driver: Driver) -> None:
        _as_preparing(driver).release(self.handle)


def check_prepare_is_repeatable(bench: Bench, root: Path) -> None:
    """Check that prepare and release are idempotent, also in a later process."""
    for setup in _build_setups(bench, root):
        before = discover(setup.driver)
        setup.prepare(setup.driver)
        prepared = discover(setup.driver)
        setup.prepare(setup.driver)
        expect(discover(setup.driver) == prepared, 'a second prepare changes the host')
        successor = _build_successor(bench, setup)
        setup.prepare(successor)
        expect(discover(successor) == prepared, 'the next process sees other results')
        for _ in range(2):
            setup.release(successor)
            expect(discover(successor) == before, 'release does not undo prepare')


def check_is_prepared_is_correct(bench: Bench, root: Path) -> None:
    """Check the results of ``ChecksHandles`` before, after, and in a later process."""
    for setup in _build_setups(bench, root):
        if not isinstance(setup.driver, ChecksHandles):
            return
        missing = not setup.driver.is_prepared(setup.handle)
        before = discover(setup.driver)
        setup.prepare(setup.driver)
        successor = _build_successor(bench, setup)
        for driver in (setup.driver, successor):
            assert isinstance(driver, ChecksHandles)
            expect(driver.is_prepared(setup.handle), 'is_prepared misses a handle')
        setup.release(successor)
        missing_again = not setup.driver.is_prepared(setup.handle)
        if discover(setup.driver) == before:
            expect(missing_again == missing, 'is_prepared finds a released handle')


def check_release_without_prepare_is_accepted(bench: Bench, root: Path) -> None:
    """Check that the release of a handle that was never prepared changes nothing."""
    for setup in _build_setups(bench, root):
        before = discover(setup.driver)
        setup.release(setup.driver)
        message = 'release changes the host without a prepare'
        expect(discover(setup.driver) == before, message)


def check_release_is_isolated(bench: Bench, root: Path) -> None:
    """Check that the release of one handle does not affect another one."""
    for setup in _build_setups(bench, root):
        if setup.neighbor is None:
            continue
        setup.prepare(setup.driver)
        files = read_files(setup.host.root)
        successor = _build_successor(bench, setup)
        for driver in (setup.driver, successor):
            _as_preparing(driver).prepare(setup.neighbor)
            _as_preparing(driver).release(setup.neighbor)
            unchanged = read_files(setup.host.root) == files
            expect(unchanged, 'the release of one handle changes another')
        setup.release(successor)


def check_handles_are_stable(bench: Bench, root: Path) -> None:
    """Check that prepare does not change the keys and infos of handles."""
    for setup in _build_setups(bench, root):
        before = _list_identities(discover(setup.driver))
        setup.prepare(setup.driver)
        after = _list_identities(discover(setup.driver))
        expect(after == before, 'prepare changes keys or infos of handles')
        setup.release(setup.driver)


def check_refused_change_is_undone(bench: Bench, root: Path) -> None:
    """Check that a change that the kernel refuses is reported and undone."""
    for setup in _build_faulty_setups(bench, root, FaultKind.REFUSAL):
        before = discover(setup.driver)
        is_reported = _raises_driver_error(setup)
        if is_reported:
            message = 'a failed prepare leaves changes behind'
            expect(discover(setup.driver) == before, message)
        files = read_files(setup.host.root)
        setup.prepare(setup.driver)
        # Without an error the first call must have completed the preparation.
        is_complete = read_files(setup.host.root) == files
        expect(is_reported or is_complete, 'a refused change raises no DriverError')
        setup.release(setup.driver)
        expect(discover(setup.driver) == before, 'release does not undo prepare')


def check_crash_is_recovered(bench: Bench, root: Path) -> None:
    """Check that a later process completes what a crashed one has started."""
    for fault in (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER):
        for setup in _build_faulty_setups(bench, root / fault.name, fault):
            before = discover(setup.driver)
            _run_until_crash(setup.prepare, setup.driver)
            successor = _build_successor(bench, setup)
            setup.prepare(successor)
            # The fault occurs once per count: let it occur in the release, too.
            setup.kernel.changes = 0
            _run_until_crash(setup.release, successor)
            last = _build_successor(bench, setup)
            setup.release(last)
            expect(discover(last) == before, 'release does not undo prepare')


def check_hang_is_reported(bench: Bench, root: Path) -> None:
    """Check that a blocked change raises DeviceHangs and completes later."""
    for setup in _build_faulty_setups(bench, root, FaultKind.HANG):
        expect(_raises_hang(setup), 'a blocked change raises no DeviceHangs')
        expect(_raises_hang(setup), 'a device that hangs is changed again')
        setup.kernel.resume.set()
        successor = _build_successor(bench, setup)
        while _raises_hang(setup):
            pass  # the resumed change has not returned yet
        setup.prepare(successor)
        setup.release(successor)


def check_connect_is_repeatable(bench: Bench, root: Path) -> None:
    """Check that connect is idempotent, also in a later process, and is undone."""
    for setup in _build_setups(bench, root):
        if not isinstance(setup.driver, ConnectsHandles):
            return
        before = discover(setup.driver)
        setup.prepare(setup.driver)
        setup.driver.connect(setup.handle)
        files = read_files(setup.host.root)
        successor = _build_successor(bench, setup)
        assert isinstance(successor, ConnectsHandles)
        successor.connect(setup.handle)
        unchanged = read_files(setup.host.root) == files
        expect(unchanged, 'a second connect changes the host')
        setup.release(successor)
        expect(discover(successor) == before, 'release does not undo connect')


def check_refused_connect_is_reported(bench: Bench, root: Path) -> None:
    """Check that a change of connect that the kernel refuses is a DriverError."""
    for setup in _build_setups(bench, root):
        if not isinstance(setup.driver, ConnectsHandles):
            return
        before = discover(setup.driver)
        setup.prepare(setup.driver)
        kernel = setup.kernel
        kernel.changes, kernel.at, kernel.fault = 0, 0, FaultKind.REFUSAL
        try:
            setup.driver.connect(setup.handle)
        except DriverError:
            setup.driver.connect(setup.handle)
        else:
            expect(not kernel.changes, 'a refused connect raises no DriverError')
        setup.release(setup.driver)
        expect(discover(setup.driver) == before, 'release does not undo connect')


def check_group_is_repeatable(bench: Bench, root: Path) -> None:
    """Check that a group is activated and deactivated repeatedly, or refused whole."""
    setup = _build_setup(bench, root / 'group', 0)
    driver = setup.driver
    if not isinstance(driver, ActivatesGroups):
        return
    for members in _list_groups(driver):
        for member in members:
            _as_preparing(driver).prepare(member)
        _check_group(setup, bench, members)
        for member in members:
            _as_preparing(driver).release(member)


def _check_group(
    setup: _Setup, bench: Bench, members: Sequence[AllocatedHandle]
) -> None:
    driver, successor = setup.driver, bench.make(setup.host)
    assert isinstance(driver, ActivatesGroups)
    assert isinstance(successor, ActivatesGroups)
    prepared = read_files(setup.host.root)
    try:
        driver.activate(members)
    except DriverError:
        unchanged = read_files(setup.host.root) == prepared
        expect(unchanged, 'a refused group changes the host')
        return
    files = read_files(setup.host.root)
    successor.activate(members)
    is_same = read_files(setup.host.root) == files
    expect(is_same, 'a second activate changes the host')
    for _ in range(2):
        successor.deactivate(members)
        is_undone = read_files(setup.host.root) == prepared
        expect(is_undone, 'deactivate does not undo activate')


def check_failed_group_is_undone(bench: Bench, root: Path) -> None:
    """Check that a refused change of activate is reported, and can be undone."""
    for fault in (FaultKind.REFUSAL, FaultKind.CRASH_AFTER):
        setup = _build_setup(bench, root / fault.name, 0)
        if not isinstance(setup.driver, ActivatesGroups):
            return
        for members in _list_groups(setup.driver):
            for member in members:
                _as_preparing(setup.driver).prepare(member)
            _check_faulty_group(setup, bench, members, fault)
            for member in members:
                _as_preparing(setup.driver).release(member)


def _check_faulty_group(
    setup: _Setup, bench: Bench, members: Sequence[AllocatedHandle], fault: FaultKind
) -> None:
    """Let each change of an activation fail; check that deactivate undoes it."""
    prepared = read_files(setup.host.root)
    kernel = setup.kernel
    for at in range(_MAX_CHANGES):
        driver, successor = bench.make(setup.host), bench.make(setup.host)
        assert isinstance(driver, ActivatesGroups)
        assert isinstance(successor, ActivatesGroups)
        kernel.changes, kernel.at, kernel.fault = 0, at, fault
        is_reported = False
        try:
            driver.activate(members)
        except (DriverError, ProcessCrash):
            is_reported = True
        is_faulty = kernel.changes > at
        kernel.fault = FaultKind.NONE
        successor.deactivate(members)
        is_undone = read_files(setup.host.root) == prepared
        expect(is_undone, 'deactivate does not undo a failed activate')
        if not is_faulty:
            return
        expect(is_reported, 'a refused activate raises no DriverError')


PREPARATION_CHECKS: Final[Sequence[Callable[[Bench, Path], None]]] = (
    check_prepare_is_repeatable,
    check_is_prepared_is_correct,
    check_release_without_prepare_is_accepted,
    check_release_is_isolated,
    check_handles_are_stable,
    check_refused_change_is_undone,
    check_crash_is_recovered,
    check_hang_is_reported,
    check_connect_is_repeatable,
    check_refused_connect_is_reported,
    check_group_is_repeatable,
    check_failed_group_is_undone,
)


def build_handle(
    device: Device, deployable: Deployable, handle: AttachHandle
) -> AllocatedHandle:
    """Return an attach handle as the conductor allocates it to an ARQ."""
    return AllocatedHandle(
        uuid=str(uuid.uuid5(uuid.NAMESPACE_OID, handle.key)),
        arq_uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, handle.key)),
        hostname=HOSTNAME,
        deployable_name=deployable.name,
        driver=device.driver,
        control_address=device.control_address,
        key=handle.key,
        type=handle.type,
        info=dict(handle.info),
        needs_host=handle.needs_host,
        instance_uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, handle.key)),
    )


def _build_setups(bench: Bench, root: Path) -> Iterator[_Setup]:
    """Yield a setup for one handle of each deployable with ``needs_host``."""
    count = len(_list_handle_pairs(_build_setup(bench, root / 'count', 0).driver))
    for number in range(count):
        yield _build_setup(bench, root / f'unit-{number}', number)


def _build_faulty_setups(
    bench: Bench, root: Path, fault: FaultKind
) -> Iterator[_Setup]:
    """Yield a setup for each change of a preparation, with the fault in this change."""
    for at in range(_MAX_CHANGES):
        for setup in _build_setups(bench, root / f'change-{at}'):
            if at >= _count_changes(bench, root / f'needed-{at}', setup):
                return
            setup.kernel.at, setup.kernel.fault = at, fault
            yield setup


def _count_changes(bench: Bench, root: Path, setup: _Setup) -> int:
    """Return the number of changes that the preparation of a handle needs."""
    counting = _build_setup(bench, root / setup.handle.uuid, 0)
    _as_preparing(counting.driver).prepare(setup.handle)
    return counting.kernel.changes


def _build_setup(bench: Bench, root: Path, number: int) -> _Setup:
    root.mkdir(parents=True)
    kernel = FaultyKernel(bench.build(root))
    host = Host(HOSTNAME, root, kernel)
    driver = bench.make(host)
    pairs = _list_handle_pairs(driver)
    expect(bool(pairs), 'no handle on the host of the bench has needs_host')
    return _Setup(host, kernel, driver, *pairs[number])


def _list_handle_pairs(
    driver: Driver,
) -> list[tuple[AllocatedHandle, AllocatedHandle | None]]:
    """Return two free handles with ``needs_host`` of each deployable.

    :returns: the second handle is None if the deployable has only one
    """
    pairs: list[tuple[AllocatedHandle, AllocatedHandle | None]] = []
    for device in (result.device for result in discover(driver) if result.device):
        for deployable in device.root.walk():
            free = [
                build_handle(device, deployable, handle)
                for handle in deployable.handles
                if handle.needs_host and not handle.in_use
            ]
            if free:
                pairs.append((free[0], free[1] if free[1:] else None))
    return pairs


def _list_groups(driver: Driver) -> list[list[AllocatedHandle]]:
    """Return the free handles of each group of a driver that is ``ActivatesGroups``."""
    assert isinstance(driver, ActivatesGroups)
    groups: dict[str, list[AllocatedHandle]] = {}
    for device in (result.device for result in discover(driver) if result.device):
        for deployable in device.root.walk():
            for handle in deployable.handles:
                allocated = build_handle(device, deployable, handle)
                if handle.needs_host and not handle.in_use:
                    groups.setdefault(driver.find_group(allocated), []).append(
                        allocated
                    )
    groups.pop('', None)
    return list(groups.values())


def _list_identities(
    results: Sequence[DiscoveryResult],
) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return key and info of all handles."""
    return [
        (handle.key, tuple(sorted(handle.info.items())))
        for device in (result.device for result in results)
        if device is not None
        for deployable in device.root.walk()
        for handle in deployable.handles
    ]


def _build_successor(bench: Bench, setup: _Setup) -> Driver:
    """Return a driver as the next agent process creates it."""
    driver = bench.make(setup.host)
    if isinstance(driver, TracksHandles):
        driver.restore_handles([setup.handle])
    return driver


def _as_preparing(driver: Driver) -> PreparesHandles:
    expect(
        isinstance(driver, PreparesHandles),
        'handles have needs_host, but the driver has no prepare and release',
    )
    assert isinstance(driver, PreparesHandles)
    return driver


def _run_until_crash(action: Callable[[Driver], None], driver: Driver) -> None:
    try:
        action(driver)
    except ProcessCrash:
        return


def _raises_driver_error(setup: _Setup) -> bool:
    try:
        setup.prepare(setup.driver)
    except DriverError:
        return True
    return False


def _raises_hang(setup: _Setup) -> bool:
    """Return True if prepare raises DeviceHangs, False if it succeeds.

    :raises ConformanceError: prepare does not return in time
    """
    pool = ThreadPoolExecutor(1)
    future = pool.submit(setup.prepare, setup.driver)
    pool.shutdown(wait=False)
    wait([future], _TIMEOUT)
    if not future.done():
        setup.kernel.resume.set()
        raise ConformanceError('prepare does not return while a change is blocked')
    error = future.exception()
    if error is not None and not isinstance(error, DeviceHangs):
        raise error
    return error is not None
