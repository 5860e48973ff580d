# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-dbsync as an operator runs it, on a file."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import dbsync


@pytest.fixture(autouse=True)
def _leave_logging_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handlers would outlive the test, with a stream that is closed."""
    monkeypatch.setattr(configuration, 'set_up_logging', lambda _conf: None)


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/db.sqlite\n')
    return ['--config-file', str(file)]


def test_upgrade_tells_what_it_did_and_then_that_it_was_done(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbsync.main([*options, 'upgrade']) == 0
    assert 'is at revision 0001 now; it was at None' in capsys.readouterr().out
    assert dbsync.main([*options, 'upgrade']) == 0
    assert 'is at revision 0001 already' in capsys.readouterr().out


def test_current_says_what_is_left_to_do(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbsync.main([*options, 'current']) == 0
    assert 'run `cyborg-lite-dbsync upgrade`' in capsys.readouterr().out
    dbsync.main([*options, 'upgrade'])
    capsys.readouterr()
    assert dbsync.main([*options, 'current']) == 0
    assert capsys.readouterr().out == '0001 (head)\n'


def test_history_lists_the_revisions(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbsync.main([*options, 'history']) == 0
    assert capsys.readouterr().out == '0001 (head): The first schema.\n'


def test_an_unknown_revision_is_named(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dbsync.main([*options, 'upgrade', '4711']) == 1
    assert "'4711'" in capsys.readouterr().err


def test_a_database_that_cannot_be_opened_is_an_error_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/no/db.sqlite\n')
    assert dbsync.main(['--config-file', str(file), 'upgrade']) == 1
    assert capsys.readouterr().err.startswith('cyborg-lite-dbsync: The database')


def test_no_command_is_a_mistake(options: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        dbsync.main(options)
    assert caught.value.code == 2
