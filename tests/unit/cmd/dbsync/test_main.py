# SPDX-License-Identifier: Apache-2.0
"""Tests of cyborg-lite-dbsync on an SQLite file."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.dbsync import main
from cyborg_lite.db.core import migration


@pytest.fixture(autouse=True)
def _keep_logging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not install log handlers, which would outlive the captured streams."""
    monkeypatch.setattr(configuration, 'set_up_logging', lambda _conf: None)


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/db.sqlite\n')
    return ['--config-file', str(file)]


def test_upgrade_prints_old_and_new_revision(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    head = migration.head_revision()
    assert main.main([*options, 'upgrade']) == 0
    assert f'upgraded from revision None to {head}' in capsys.readouterr().out
    assert main.main([*options, 'upgrade']) == 0
    assert f'already at revision {head}' in capsys.readouterr().out


def test_current_old_schema_prints_upgrade_command(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([*options, 'current']) == 0
    assert 'run `cyborg-lite-dbsync upgrade`' in capsys.readouterr().out
    main.main([*options, 'upgrade'])
    capsys.readouterr()
    assert main.main([*options, 'current']) == 0
    assert capsys.readouterr().out == f'{migration.head_revision()} (head)\n'


def test_history_lists_revisions(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([*options, 'history']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('0001')
    assert lines[-1].startswith(f'{migration.head_revision()} (head): ')


def test_upgrade_unknown_revision_prints_it(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([*options, 'upgrade', '4711']) == 1
    assert "'4711'" in capsys.readouterr().err


def test_upgrade_unreachable_database_prints_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/no/db.sqlite\n')
    assert main.main(['--config-file', str(file), 'upgrade']) == 1
    assert capsys.readouterr().err.startswith('cyborg-lite-dbsync: The database')


def test_main_without_command_exits_with_2(options: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main.main(options)
    assert caught.value.code == 2
