# SPDX-License-Identifier: Apache-2.0
"""Tests of the crash checks with wrong drivers; correct ones are in tests/conformance.

A wrong driver fails at the first crash, so that each test needs few runs.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from cyborg_lite.testing.crash_checks import CRASH_CHECKS, Scenario
from cyborg_lite.testing.driver_checks import ConformanceError
from tests.doubles.file_driver import FileDriver, build_bench


class ForgetfulDriver(FileDriver):
    """Driver that reports the handles which the same process has prepared."""

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.calls: list[str] = []

    def discover(self) -> Iterator[DiscoveryResult]:
        for result in super().discover():
            yield replace(result, reason=f'calls: {", ".join(self.calls)}')

    def prepare(self, handle: AllocatedHandle) -> None:
        super().prepare(handle)
        self.calls.append('prepare')

    def release(self, handle: AllocatedHandle) -> None:
        super().release(handle)
        self.calls.append('release')


@pytest.mark.parametrize('check', CRASH_CHECKS, ids=lambda check: check.__name__)
def test_wrong_driver_raises_error_with_crash_point(
    check: Callable[[Scenario, Path], None], tmp_path: Path
) -> None:
    scenario = Scenario(build_bench(ForgetfulDriver), number=1)
    message = r'after a crash before the transaction \w+: the host is not'
    with pytest.raises(ConformanceError, match=message):
        check(scenario, tmp_path)
