# SPDX-License-Identifier: Apache-2.0
"""The part of the conformance suite about handles that are prepared and released.

For drivers that are ``Preparing`` and have units that need their host. The options that
the bench gives its driver should make changes time out within a second or less.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.base import Checking, Driver, Preparing, Recalling
from cyborg_lite.drivers.kit import (
    HOSTNAME,
    Bench,
    Nonconforming,
    expect,
    findings,
    snapshot,
)
from cyborg_lite.drivers.kit_faults import Death, Trouble, TroubledKernel
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import DeviceHangs, DriverError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Deployable, Device, Unit

_MOST_CHANGES: Final = 32  # that one prepare or release may make
_PATIENCE: Final = 30.0  # seconds in which a change that hangs must be given up


@dataclass(frozen=True, slots=True)
class _Scene:
    """A host as it was built, with a driver that has looked at it."""

    host: Host
    kernel: TroubledKernel
    driver: Driver
    handle: HeldHandle
    beside: HeldHandle | None  # of the same deployable; None: no other is free

    def prepare(self, driver: Driver) -> None:
        _preparing(driver).prepare(self.handle)

    def release(self, driver: Driver) -> None:
        _preparing(driver).release(self.handle)


def preparing_can_be_repeated(bench: Bench, root: Path) -> None:
    """Twice by one driver and once by its successor is as good as once."""
    for scene in _scenes(bench, root):
        before = findings(scene.driver)
        scene.prepare(scene.driver)
        once = findings(scene.driver)
        scene.prepare(scene.driver)
        expect(findings(scene.driver) == once, 'a second prepare changes something')
        successor = _successor(bench, scene, [scene.handle])
        scene.prepare(successor)
        expect(findings(successor) == once, 'the successor sees something else')
        for _ in range(2):
            scene.release(successor)
            expect(findings(successor) == before, 'release leaves something behind')


def what_is_prepared_is_known(bench: Bench, root: Path) -> None:
    """For drivers that are ``Checking``: before, after, and by a successor."""
    for scene in _scenes(bench, root):
        if not isinstance(scene.driver, Checking):
            return
        missing = not scene.driver.is_prepared(scene.handle)
        before = findings(scene.driver)
        scene.prepare(scene.driver)
        successor = _successor(bench, scene, [scene.handle])
        for driver in (scene.driver, successor):
            assert isinstance(driver, Checking)
            expect(driver.is_prepared(scene.handle), 'what is there is taken for lost')
        scene.release(successor)
        gone = not scene.driver.is_prepared(scene.handle)
        if findings(scene.driver) == before:
            expect(gone == missing, 'what is released is taken for there')


def release_of_what_never_was_is_done(bench: Bench, root: Path) -> None:
    for scene in _scenes(bench, root):
        before = findings(scene.driver)
        scene.release(scene.driver)
        expect(findings(scene.driver) == before, 'it releases what is not its own')


def one_release_leaves_the_others(bench: Bench, root: Path) -> None:
    """What the driver, or one before it, prepared on a device stays to the last."""
    for scene in _scenes(bench, root):
        if scene.beside is None:
            continue
        scene.prepare(scene.driver)
        alone = snapshot(scene.host.root)
        successor = _successor(bench, scene, [scene.handle])
        for driver in (scene.driver, successor):
            _preparing(driver).prepare(scene.beside)
            _preparing(driver).release(scene.beside)
            left = snapshot(scene.host.root)
            expect(left == alone, 'the release of one unit changes another')
        scene.release(successor)


def units_stay_where_they_are(bench: Bench, root: Path) -> None:
    """Keys and infos of units are the same whether or not one is in use."""
    for scene in _scenes(bench, root):
        before = _units(findings(scene.driver))
        scene.prepare(scene.driver)
        expect(_units(findings(scene.driver)) == before, 'prepare moves units')
        scene.release(scene.driver)


def a_refusal_leaves_nothing_behind(bench: Bench, root: Path) -> None:
    """Whichever change the kernel refuses: it is told, undone, and works later."""
    for scene in _troubled(bench, root, Trouble.REFUSAL):
        before = findings(scene.driver)
        told = _is_told(scene)
        if told:
            expect(
                findings(scene.driver) == before, 'a failed prepare leaves something'
            )
        files = snapshot(scene.host.root)
        scene.prepare(scene.driver)
        done = snapshot(scene.host.root) == files
        expect(told or done, 'a change that is refused is not told as DriverError')
        scene.release(scene.driver)
        expect(findings(scene.driver) == before, 'release leaves something behind')


def a_death_is_made_good(bench: Bench, root: Path) -> None:
    """Whenever the agent dies, the next one completes what was begun."""
    for trouble in (Trouble.DEATH_BEFORE, Trouble.DEATH_AFTER):
        for scene in _troubled(bench, root / trouble.name, trouble):
            before = findings(scene.driver)
            _until_death(scene.prepare, scene.driver)
            successor = _successor(bench, scene, [scene.handle])
            scene.prepare(successor)
            # The trouble comes once; now let it come in the midst of the release.
            scene.kernel.changes = 0
            _until_death(scene.release, successor)
            last = _successor(bench, scene, [scene.handle])
            scene.release(last)
            expect(findings(last) == before, 'release leaves something behind')


def a_hang_is_given_up(bench: Bench, root: Path) -> None:
    """A change that does not return is told as such, and found done in the end."""
    for scene in _troubled(bench, root, Trouble.HANG):
        hung = _hangs(scene)
        expect(hung, 'a change that does not return is not told as DeviceHangs')
        expect(_hangs(scene), 'a device that hangs is touched again')
        scene.kernel.let_go.set()
        successor = _successor(bench, scene, [scene.handle])
        while _hangs(scene):
            pass  # the change that was let go is under way
        scene.prepare(successor)
        scene.release(successor)


PREPARING_CHECKS: Final[Sequence[Callable[[Bench, Path], None]]] = (
    preparing_can_be_repeated,
    what_is_prepared_is_known,
    release_of_what_never_was_is_done,
    one_release_leaves_the_others,
    units_stay_where_they_are,
    a_refusal_leaves_nothing_behind,
    a_death_is_made_good,
    a_hang_is_given_up,
)


def handle_of(device: Device, deployable: Deployable, unit: Unit) -> HeldHandle:
    """As the conductor would hold a unit for a request."""
    return HeldHandle(
        uuid=str(uuid.uuid5(uuid.NAMESPACE_OID, unit.key)),
        arq_uuid=str(uuid.uuid5(uuid.NAMESPACE_URL, unit.key)),
        hostname=HOSTNAME,
        deployable_name=deployable.name,
        driver=device.driver,
        address=device.address,
        key=unit.key,
        type=unit.type,
        info=dict(unit.info),
        needs_host=unit.needs_host,
    )


def _scenes(bench: Bench, root: Path) -> Iterator[_Scene]:
    """The host anew for one unit of each deployable that needs it."""
    count = len(_handles(_scene(bench, root / 'count', 0)[1]))
    expect(count > 0, 'no unit on the host of the bench needs its host')
    for number in range(count):
        yield _scene(bench, root / f'unit-{number}', number)[0]


def _troubled(bench: Bench, root: Path, trouble: Trouble) -> Iterator[_Scene]:
    """The host anew for each change that it takes to prepare a unit."""
    for at in range(_MOST_CHANGES):
        for scene in _scenes(bench, root / f'change-{at}'):
            needed = _changes_needed(bench, root / f'needed-{at}', scene)
            if at >= needed:
                return
            scene.kernel.at, scene.kernel.trouble = at, trouble
            yield scene


def _changes_needed(bench: Bench, root: Path, like: _Scene) -> int:
    place = root / like.handle.uuid
    scene, driver = _scene(bench, place, 0)
    _preparing(driver).prepare(like.handle)
    return scene.kernel.changes


def _scene(bench: Bench, root: Path, number: int) -> tuple[_Scene, Driver]:
    root.mkdir(parents=True)
    kernel = TroubledKernel(bench.build(root))
    host = Host(HOSTNAME, root, kernel)
    driver = bench.make(host)
    handles = _handles(driver)
    expect(bool(handles), 'no unit on the host of the bench needs its host')
    return _Scene(host, kernel, driver, *handles[number]), driver


def _handles(driver: Driver) -> list[tuple[HeldHandle, HeldHandle | None]]:
    """Of each deployable the first two units that are free and need the host.

    None: there is no second one.
    """
    found: list[tuple[HeldHandle, HeldHandle | None]] = []
    for device in (each.device for each in findings(driver) if each.device):
        for part in device.root.walk():
            free = [u for u in part.units if u.needs_host and not u.in_use]
            handles = [handle_of(device, part, unit) for unit in free[:2]]
            if handles:
                found.append((handles[0], handles[1] if handles[1:] else None))
    return found


def _units(found: Sequence[object]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [
        (unit.key, tuple(sorted(unit.info.items())))
        for device in (getattr(each, 'device', None) for each in found)
        if device is not None
        for part in device.root.walk()
        for unit in part.units
    ]


def _successor(bench: Bench, scene: _Scene, remembered: Sequence[HeldHandle]) -> Driver:
    """The driver as the next process of the agent makes it."""
    driver = bench.make(scene.host)
    if isinstance(driver, Recalling):
        driver.recall(remembered)
    return driver


def _preparing(driver: Driver) -> Preparing:
    expect(isinstance(driver, Preparing), 'units need their host, and nobody prepares')
    assert isinstance(driver, Preparing)
    return driver


def _until_death(act: Callable[[Driver], None], driver: Driver) -> None:
    try:
        act(driver)
    except Death:
        return


def _is_told(scene: _Scene) -> bool:
    try:
        scene.prepare(scene.driver)
    except DriverError:
        return True
    return False


def _hangs(scene: _Scene) -> bool:
    pool = ThreadPoolExecutor(1)
    prepared = pool.submit(scene.prepare, scene.driver)
    pool.shutdown(wait=False)
    wait([prepared], _PATIENCE)
    if not prepared.done():
        scene.kernel.let_go.set()
        raise Nonconforming('prepare waits for a change that does not return')
    error = prepared.exception()
    if error is not None and not isinstance(error, DeviceHangs):
        raise error
    return error is not None
