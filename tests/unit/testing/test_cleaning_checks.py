# SPDX-License-Identifier: Apache-2.0
"""Tests of the conformance checks of cleaning with correct and wrong drivers."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from cyborg_lite.testing import cleaning_checks
from cyborg_lite.testing.cloud import Scenario
from cyborg_lite.testing.crash_checks import CRASH_CHECKS
from cyborg_lite.testing.driver_checks import ConformanceError
from tests.doubles.cleaning_driver import ERASED, Cleaning, Declaring
from tests.doubles.file_driver import FileDriver, build_bench


class Nameless(Cleaning):
    """Driver with two steps of the same name."""

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        return (CleanStep('erase', 'all data'),) * 2


class Eager(Cleaning):
    """Driver that erases when it is asked for its steps."""

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        self.host.kernel.write(self.host.root, ERASED, 'x')
        return super().list_clean_steps(handle)


class Raw(Cleaning):
    """Driver that does not convert the error of a change."""

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        self.host.kernel.write(self.host.root, ERASED, 'x')
        return ''


class Silent(Cleaning):
    """Driver that ignores the error of a change."""

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        try:
            return super().run_clean_step(handle, name, abort)
        except DriverError:
            return ''


class Leaving(Cleaning):
    """Driver whose device is gone after a cleaning run."""

    def discover(self) -> Iterator[DiscoveryResult]:
        if not self.host.has(ERASED):
            yield from super().discover()

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        self.host.kernel.write(self.host.root, ERASED, 'x')
        return ''


@pytest.mark.parametrize(
    ('driver', 'name', 'words'),
    [
        (FileDriver, 'clean_is_repeatable', 'no handle'),
        (Declaring, 'clean_is_repeatable', 'no cleaning steps'),
        (Nameless, 'clean_steps_are_declared', 'a name twice'),
        (Eager, 'clean_steps_are_declared', 'changes files'),
        (Raw, 'failed_change_is_reported', 'raises OSError'),
        (Silent, 'failed_change_is_reported', 'no DriverError'),
        (Leaving, 'clean_is_repeatable', 'changes the reported devices'),
        (Leaving, 'crash_of_clean_is_recovered', 'after a crash'),
    ],
)
def test_wrong_driver_is_detected(
    driver: type[FileDriver], name: str, words: str, tmp_path: Path
) -> None:
    check = getattr(cleaning_checks, f'check_{name}')
    with pytest.raises(ConformanceError, match=words):
        check(build_bench(driver), tmp_path)


def test_crash_check_detects_failing_clean(tmp_path: Path) -> None:
    class Broken(Cleaning):
        def run_clean_step(
            self, handle: AllocatedHandle, name: str, abort: threading.Event
        ) -> str:
            raise DriverError(reason='medium error')

    (_, check_release, *_) = CRASH_CHECKS
    with pytest.raises(ConformanceError, match=r'not clean: .*medium error'):
        check_release(Scenario(build_bench(Broken), number=1), tmp_path)
