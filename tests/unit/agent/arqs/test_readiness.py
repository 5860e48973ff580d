# SPDX-License-Identifier: Apache-2.0
"""Tests of the file that shows that the handles exist since the boot of the host."""

from pathlib import Path

import pytest

from cyborg_lite.agent.arqs.readiness import Readiness


@pytest.mark.parametrize(
    ('boot_id', 'is_ready'), [('boot-1', True), ('boot-2', False), ('', False)]
)
def test_host_is_ready_for_recorded_boot_only(
    tmp_path: Path, boot_id: str, is_ready: bool
) -> None:
    Readiness(tmp_path).record('boot-1')
    assert Readiness(tmp_path, read_only=True).is_ready(boot_id) is is_ready


def test_host_without_record_is_not_ready(tmp_path: Path) -> None:
    assert not Readiness(tmp_path).is_ready('boot-1')
