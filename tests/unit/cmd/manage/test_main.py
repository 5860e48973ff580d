# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage``: its groups of commands and the exit status."""

from pathlib import Path

import pytest

from cyborg_lite.cmd.manage import main

Out = pytest.CaptureFixture[str]


@pytest.mark.parametrize('arguments', [[], ['nonsense'], ['audit', '--nonsense']])
def test_invalid_arguments_exit_with_2(arguments: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit) as caught:
        main.main(arguments)
    assert caught.value.code == 2
    assert 'usage: ' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('lines', 'words'),
    [
        ('[database]\nconnection = oracle://x\n', 'oracle is none of'),
        ('[conductor]\norphan_grace = x\n', 'orphan_grace'),
        ('no section\n', 'cyborg-lite.conf'),
    ],
)
def test_invalid_configuration_returns_2(
    lines: str, words: str, tmp_path: Path, capsys: Out
) -> None:
    """Status 1 would mean that a command has found a problem."""
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(lines)
    assert main.main(['--config-file', str(file), 'ownership']) == 2
    output = capsys.readouterr()
    assert words in output.err
    assert 'Traceback' not in output.err
    assert output.out == ''


def test_database_without_schema_returns_2(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/new.sqlite\n')
    assert main.main(['--config-file', str(file), 'ownership']) == 2
    assert 'cyborg-lite-dbsync' in capsys.readouterr().err
