# SPDX-License-Identifier: Apache-2.0
"""Runs of the commands of cyborg-lite-manage, and a fake Placement for them."""

from collections.abc import Callable
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.manage import main
from tests.builders.reports import HOST
from tests.doubles.placement import FakePlacement

Manage = Callable[..., tuple[int, str, str]]


@pytest.fixture
def manage(
    write_config: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> Manage:
    """Return a function that runs a command; it returns status, output and errors."""
    options = write_config()

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main.main([*options, *arguments])
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def placement(monkeypatch: pytest.MonkeyPatch) -> FakePlacement:
    """Return the Placement of the command, with the compute node of one host."""
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    monkeypatch.setattr(Placement, 'from_config', lambda conf: placement)
    return placement
