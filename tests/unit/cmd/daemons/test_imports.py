# SPDX-License-Identifier: Apache-2.0
"""Tests of the libraries that daemons import."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ('daemon', 'unused'),
    [
        ('api', 'alembic eventlet prometheus_client cyborg_lite.db'),
        ('conductor', 'alembic mako pygments eventlet openstack jsonschema'),
        ('controller', 'alembic eventlet cyborg_lite.agent'),
    ],
)
def test_daemon_imports_no_unused_library(daemon: str, unused: str) -> None:
    code = (
        f'import sys, cyborg_lite.cmd.daemons.{daemon}\n'
        f'print([name for name in {unused.split()} if sys.modules.get(name)])'
    )
    command = [sys.executable, '-W', 'ignore', '-c', code]
    assert subprocess.check_output(command, text=True).strip() == '[]'
