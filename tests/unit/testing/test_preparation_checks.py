# SPDX-License-Identifier: Apache-2.0
"""Tests of the conformance checks of preparation with correct and wrong drivers."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.testing import preparation_checks
from cyborg_lite.testing.driver_checks import (
    ConformanceError,
)
from tests.doubles.file_driver import FileDriver, build_bench


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
    ('driver', 'name', 'message'),
    [
        (SingleUseDriver, 'prepare_is_repeatable', 'a second prepare changes the host'),
        (LeavingDriver, 'prepare_is_repeatable', 'release does not undo prepare'),
        (GreedyDriver, 'release_is_isolated', 'one handle changes another'),
        (SilentDriver, 'refused_change_is_undone', 'change raises no DriverError'),
        (LeavingDriver, 'crash_is_recovered', 'release does not undo prepare'),
        (AppendingDriver, 'connect_is_repeatable', 'second connect changes the host'),
        (
            SilentlyConnectingDriver,
            'refused_connect_is_reported',
            'connect raises no DriverError',
        ),
        (ForgetfulGroupingDriver, 'failed_group_is_undone', 'undo a failed activate'),
        (SilentGroupingDriver, 'failed_group_is_undone', 'raises no DriverError'),
        (ForgetfulGroupingDriver, 'group_is_repeatable', 'does not undo activate'),
        (CountingGroupingDriver, 'group_is_repeatable', 'second activate changes'),
    ],
)
def test_wrong_driver_raises_conformance_error(
    driver: type[FileDriver], name: str, message: str, tmp_path: Path
) -> None:
    check = getattr(preparation_checks, f'check_{name}')
    with pytest.raises(ConformanceError, match=message):
        check(build_bench(driver), tmp_path)
