# SPDX-License-Identifier: Apache-2.0
"""Tests of the conformance checks of preparation with correct and wrong drivers."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.testing import preparation_checks
from cyborg_lite.testing.driver_checks import (
    HOSTNAME,
    Bench,
    ConformanceError,
    discover,
)
from cyborg_lite.testing.preparation_checks import build_handle
from tests.doubles.file_driver import ADDRESS, INFO, FileDriver, build_bench

Check = Callable[[Bench, Path], None]


class SingleUseDriver(FileDriver):
    """Driver whose second prepare changes the host."""

    def prepare(self, handle: AllocatedHandle) -> None:
        if self.host.names('prepared'):
            self.host.kernel.write(self.host.root, 'prepared/second', 'x')
        super().prepare(handle)


class LeavingDriver(FileDriver):
    """Driver whose release does nothing."""

    def release(self, handle: AllocatedHandle) -> None:
        pass


class GreedyDriver(FileDriver):
    """Driver whose release removes all handles."""

    def release(self, handle: AllocatedHandle) -> None:
        for name in self.host.names('prepared'):
            self.host.kernel.write(self.host.root, f'prepared/{name}', '')


class SilentDriver(FileDriver):
    """Driver that ignores a refused change."""

    def prepare(self, handle: AllocatedHandle) -> None:
        try:
            super().prepare(handle)
        except OSError:
            return


class ReportingDriver(FileDriver):
    """Driver that converts a refused change into a DriverError."""

    def prepare(self, handle: AllocatedHandle) -> None:
        try:
            super().prepare(handle)
        except OSError as error:
            raise DriverError(reason=str(error)) from None


class ConnectingDriver(ReportingDriver):
    """Driver that writes another text once the instance is spawned."""

    def connect(self, handle: AllocatedHandle) -> None:
        try:
            self.write_file(handle, 'connected')
        except OSError as error:
            raise DriverError(reason=str(error)) from None


class AppendingDriver(ConnectingDriver):
    """Driver whose second connect changes the host."""

    def connect(self, handle: AllocatedHandle) -> None:
        name = handle.key.rpartition('/')[2]
        text = self.host.text(f'prepared/{name}') or ''
        self.write_file(handle, f'{text}+')


class SilentlyConnectingDriver(ReportingDriver):
    """Driver that ignores a refused connect."""

    def connect(self, handle: AllocatedHandle) -> None:
        with suppress(OSError):
            self.write_file(handle, 'connected')


class GroupingDriver(FileDriver):
    """Driver whose handles are activated together."""

    def find_group(self, handle: AllocatedHandle) -> str:
        return 'fabric'

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        names = ' '.join(member.key for member in members)
        try:
            self.host.kernel.write(self.host.root, 'prepared/partition', names)
        except OSError as error:
            raise DriverError(reason=str(error)) from None

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        self.host.kernel.write(self.host.root, 'prepared/partition', '')


class ForgetfulGroupingDriver(GroupingDriver):
    """Driver that does not undo the activation of a group."""

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        pass


class SilentGroupingDriver(GroupingDriver):
    """Driver that ignores a refused activation."""

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        with suppress(DriverError):
            super().activate(members)


class CountingGroupingDriver(GroupingDriver):
    """Driver whose second activation changes the host."""

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        text = self.host.text('prepared/partition') or ''
        self.host.kernel.write(self.host.root, 'prepared/partition', f'{text}+')


@pytest.mark.parametrize(
    ('driver', 'check'),
    [
        (ReportingDriver, preparation_checks.check_prepare_is_repeatable),
        (ReportingDriver, preparation_checks.check_is_prepared_is_correct),
        (ReportingDriver, preparation_checks.check_release_without_prepare_is_accepted),
        (ReportingDriver, preparation_checks.check_release_is_isolated),
        (ReportingDriver, preparation_checks.check_handles_are_stable),
        (ReportingDriver, preparation_checks.check_refused_change_is_undone),
        (ReportingDriver, preparation_checks.check_crash_is_recovered),
        (ConnectingDriver, preparation_checks.check_connect_is_repeatable),
        (ConnectingDriver, preparation_checks.check_refused_connect_is_reported),
        (GroupingDriver, preparation_checks.check_group_is_repeatable),
        (GroupingDriver, preparation_checks.check_failed_group_is_undone),
    ],
    ids=lambda value: value.__name__,
)
def test_correct_driver_passes(
    driver: type[FileDriver], check: Check, tmp_path: Path
) -> None:
    check(build_bench(driver), tmp_path)


_REPEATABLE = preparation_checks.check_prepare_is_repeatable
_UNDONE = preparation_checks.check_failed_group_is_undone
_GROUP = preparation_checks.check_group_is_repeatable


@pytest.mark.parametrize(
    ('driver', 'check', 'message'),
    [
        (SingleUseDriver, _REPEATABLE, 'a second prepare changes the host'),
        (LeavingDriver, _REPEATABLE, 'release does not undo prepare'),
        (
            GreedyDriver,
            preparation_checks.check_release_is_isolated,
            'the release of one handle changes another',
        ),
        (
            SilentDriver,
            preparation_checks.check_refused_change_is_undone,
            'a refused change raises no DriverError',
        ),
        (
            LeavingDriver,
            preparation_checks.check_crash_is_recovered,
            'release does not undo prepare',
        ),
        (
            AppendingDriver,
            preparation_checks.check_connect_is_repeatable,
            'a second connect changes the host',
        ),
        (
            SilentlyConnectingDriver,
            preparation_checks.check_refused_connect_is_reported,
            'a refused connect raises no DriverError',
        ),
        (
            ForgetfulGroupingDriver,
            _UNDONE,
            'deactivate does not undo a failed activate',
        ),
        (SilentGroupingDriver, _UNDONE, 'a refused activate raises no DriverError'),
        (ForgetfulGroupingDriver, _GROUP, 'deactivate does not undo activate'),
        (CountingGroupingDriver, _GROUP, 'a second activate changes the host'),
    ],
)
def test_wrong_driver_raises_conformance_error(
    driver: type[FileDriver], check: Check, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConformanceError, match=message):
        check(build_bench(driver), tmp_path)


def test_build_handle_copies_values_with_stable_uuid(tmp_path: Path) -> None:
    bench = build_bench()
    (result,) = discover(bench.make(bench.host(tmp_path)))
    assert result.device is not None
    root = result.device.root
    first, second = (build_handle(result.device, root, item) for item in root.handles)
    assert (first.hostname, first.control_address) == (HOSTNAME, ADDRESS)
    assert (first.key, first.info, first.needs_host) == (f'{ADDRESS}/0', INFO, True)
    assert first == build_handle(result.device, root, root.handles[0])
    assert first.uuid != second.uuid
