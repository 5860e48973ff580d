# SPDX-License-Identifier: Apache-2.0
"""Crashes of cleans and of changes of modes, and the modes of every driver."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.testing import mode_checks
from cyborg_lite.testing.cloud import Scenario
from cyborg_lite.testing.crash_checks import CRASH_CHECKS
from cyborg_lite.testing.driver_checks import Bench
from tests.doubles.cleaning_driver import Cleaning
from tests.doubles.file_driver import build_bench
from tests.doubles.mode_driver import WithModes
from tests.hosts.driver_benches import MODES

Check = Callable[[Bench, Path], None]


def test_clean_job_survives_crash_at_every_step(tmp_path: Path) -> None:
    (_, check_release, *_) = CRASH_CHECKS
    check_release(Scenario(build_bench(Cleaning), number=1), tmp_path)


# The many layouts of MIG would take long; the tests of the driver set some.
@pytest.mark.parametrize(
    ('driver', 'check'),
    [
        (driver, check)
        for driver in MODES
        for check in mode_checks.MODE_CHECKS[: 1 if driver == 'MIG' else None]
    ],
    ids=lambda value: getattr(value, '__name__', value),
)
def test_mode_checks_pass_for_every_driver(
    check: Check, driver: str, tmp_path: Path
) -> None:
    check(MODES[driver], tmp_path)


def test_mode_change_survives_crashes(tmp_path: Path) -> None:
    mode_checks.check_mode_change_survives_crashes(
        Scenario(build_bench(WithModes), number=1), tmp_path
    )
