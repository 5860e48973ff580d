# SPDX-License-Identifier: Apache-2.0
"""Tests of the file that shows that the handles exist since the boot of the host."""

from pathlib import Path

import pytest

from cyborg_lite.agent.arqs.readiness import are_rebuilt, record_rebuilt


@pytest.mark.parametrize(
    ('boot_id', 'is_ready'), [('boot-1', True), ('boot-2', False), ('', False)]
)
def test_host_is_ready_for_recorded_boot_only(
    tmp_path: Path, boot_id: str, is_ready: bool
) -> None:
    record_rebuilt(tmp_path, 'boot-1')
    assert are_rebuilt(tmp_path, boot_id) is is_ready


def test_host_without_record_is_not_ready(tmp_path: Path) -> None:
    assert not are_rebuilt(tmp_path, 'boot-1')
