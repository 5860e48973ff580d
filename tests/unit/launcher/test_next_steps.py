# SPDX-License-Identifier: Apache-2.0
"""Tests of the file to source and the example commands."""

import shlex
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from devstack.launcher import next_steps, paths
from devstack.launcher.accelerators import Accelerator
from devstack.launcher.rest import Service
from devstack.launcher.stack import Stack


def test_write_env_quotes_paths(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = top / "it's a path"
    odd.mkdir()
    monkeypatch.setattr(paths, 'CONFIG', odd / 'cyborg-lite.conf')
    stack = SimpleNamespace(
        accelerator=Service('http://a'), placement=Service('http://p')
    )
    next_steps.write_env(cast(Stack, stack))
    output = subprocess.run(
        ['sh', '-c', f'. {shlex.quote(str(paths.ENV))}; echo "$CYBORG_LITE_CONFIG"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert output.stdout.strip() == str(odd / 'cyborg-lite.conf')


def test_show_commands_binds_vgpu_of_sample_host(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    accelerators = [
        Accelerator(f'{name}-uuid', name, name, 1, 0, (f'CUSTOM_{name}',))
        for name in ('FPGA', 'VGPU', 'PGPU')
    ]
    monkeypatch.setattr(next_steps, 'list_accelerators', lambda _: accelerators)
    stack = SimpleNamespace(has_sample_host=True, placement=Service('http://p'))
    next_steps.show_commands(cast(Stack, stack))
    output = capsys.readouterr().out
    assert '--group resources:VGPU=1,trait:CUSTOM_VGPU=required' in output
    assert '"/device_rp_uuid", "value": "VGPU-uuid"' in output
    assert '--reboot-host' in output
