# SPDX-License-Identifier: Apache-2.0
"""The libraries that the import of the API loads, in processes of their own."""

import subprocess
import sys
from typing import Final

UNUSED: Final = (
    *('sqlalchemy', 'alembic', 'pygments', 'eventlet', 'greenlet'),
    'prometheus_client',  # without [api] metrics_port
)


def run(code: str) -> str:
    """Return the output of a program."""
    command = [sys.executable, '-W', 'ignore', '-c', code]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def test_api_daemon_imports_no_unused_library() -> None:
    code = (
        'import sys, cyborg_lite.cmd.api\n'
        f'print([name for name in {UNUSED} if sys.modules.get(name)])'
    )
    assert run(code) == '[]'


def test_libraries_of_other_servers_are_not_imported() -> None:
    code = (
        'import sys\n'
        'from cyborg_lite.api import pecan_loading\n'
        'print(sorted({"greenlet", "paste.httpexceptions"} & set(sys.modules)))'
    )
    assert run(code) == '[]'


def test_hidden_libraries_can_be_imported_afterwards() -> None:
    code = (
        'from cyborg_lite.api import pecan_loading\n'
        'import pygments, sqlalchemy.engine; print(sqlalchemy.engine.Row.__name__)'
    )
    assert run(code) == 'Row'


def test_library_imported_earlier_stays() -> None:
    code = (
        'import sys, sqlalchemy\n'
        'from cyborg_lite.api import pecan_loading\n'
        'print(sys.modules["sqlalchemy"] is sqlalchemy)'
    )
    assert run(code) == 'True'
