# SPDX-License-Identifier: Apache-2.0
"""Tests of the exit status of ``cyborg-lite-agent ready``."""

from pathlib import Path

import pytest

from cyborg_lite.agent.arqs.readiness import record_rebuilt
from cyborg_lite.cmd.daemons import agent


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Return the command line on a host with boot id b1."""
    boot_id = tmp_path / 'proc/sys/kernel/random/boot_id'
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text('b1\n')
    file = tmp_path / 'agent.conf'
    file.write_text(f'[agent]\nstate_path = {tmp_path}\nsysfs_root = {tmp_path}\n')
    return ['ready', '--config-file', str(file)]


def test_ready_agent_never_started_returns_1(arguments: list[str]) -> None:
    assert agent.main(arguments) == 1


@pytest.mark.parametrize(('boot_id', 'status'), [('b1', 0), ('b0', 1), ('', 1)])
def test_ready_compares_boot_of_host(
    tmp_path: Path, arguments: list[str], boot_id: str, status: int
) -> None:
    record_rebuilt(tmp_path, boot_id)
    assert agent.main(arguments) == status
