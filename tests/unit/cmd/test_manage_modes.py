# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage mode plan``."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite.cmd import manage, manage_modes
from cyborg_lite.conductor.modes import ModeService
from cyborg_lite.db.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import administration
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.jobs import JobType
from tests.builders.reports import HOST
from tests.doubles.agents import ModeAgents

Out = pytest.CaptureFixture[str]


@pytest.fixture
def options(
    write_config: Callable[..., list[str]],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """Return the command for a host whose agent is not on a message bus."""

    @contextmanager
    def open_service(_conf: cfg.ConfigOpts) -> Iterator[ModeService]:
        yield ModeService(database, ModeAgents(), lambda: None)

    monkeypatch.setattr(manage_modes, 'open_service', open_service)
    return [*write_config(), 'mode', 'plan', HOST]


def add_host(database: Database) -> None:
    card = ModeAgents.BEFORE
    database.write(reports.store_report, HostReport(HOST, 'boot', (card,)))


def test_plan_shows_difference_to_declaration(
    options: list[str], database: Database, capsys: Out
) -> None:
    add_host(database)
    assert manage.main(options) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[1:] == ['0000:3b:00.0', 'a', 'b', '-', '0', '-']
    assert '    + 4 VGPU CUSTOM_MODE_B OWNER_CYBORG' in lines
    assert '    - 4 VGPU CUSTOM_NVIDIA_1EB8 OWNER_CYBORG' in lines


def test_plan_as_json_lists_devices(
    options: list[str], database: Database, capsys: Out
) -> None:
    add_host(database)
    assert manage.main([*options, '--format', 'json']) == 1
    (plan,) = json.loads(capsys.readouterr().out)
    assert (plan['hostname'], plan['declared']) == (HOST, 'b')


def test_plan_apply_starts_changes_once(
    options: list[str], database: Database, capsys: Out
) -> None:
    add_host(database)
    assert manage.main([*options, '--apply']) == 0
    assert 'the change to b is started' in capsys.readouterr().out
    assert len(database.read(administration.list_jobs, (JobType.MODE,))) == 1
    assert manage.main([*options, '--apply']) == 1
    assert 'is being changed already' in capsys.readouterr().out


def test_plan_host_without_devices(options: list[str], capsys: Out) -> None:
    assert manage.main(options) == 0
    assert capsys.readouterr().out == 'No device of the host has modes.\n'


def test_plan_of_local_transport_names_other_commands(
    tmp_path: Path, capsys: Out
) -> None:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text('[DEFAULT]\ntransport_url = local://\n')
    assert manage.main(['--config-file', str(file), 'mode', 'plan', HOST]) != 0
    assert 'device mode list' in capsys.readouterr().err
