# SPDX-License-Identifier: Apache-2.0
"""Runs of cyborg-lite-dbsync."""

from collections.abc import Callable

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.dbsync import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    write_config: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Return a function that runs the program; it returns status, output and errors.

    It installs no log handlers, which would outlive the captured streams.
    """
    monkeypatch.setattr(configuration, 'set_up_logging', lambda _conf: None)
    options = write_config()

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main.main([*options, *arguments])
        return status, *capsys.readouterr()

    return run
