# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage init``."""

import io
import sys
from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.manage import main
from cyborg_lite.cyborg_import.known_names import list_known_names, read_sections

Out = pytest.CaptureFixture[str]

_SERVERS = (
    *('--transport-url', 'rabbit://joe:se$cret@127.0.0.1:1/joe'),
    *('--connection', 'sqlite:///no$where/db.sqlite'),
    *('--auth-url', 'http://127.0.0.1:1/v3', '--password', 'top$ecret'),
)


def init(tmp_path: Path, role: str, *arguments: str) -> tuple[int, Path]:
    """Run the command; return its exit status and the new file."""
    output, empty = tmp_path / 'cyborg-lite.conf', tmp_path / 'empty.conf'
    empty.touch()
    status = main.main(
        [
            *('--config-file', str(empty), 'init', '--role', role),
            *('--output', str(output), *arguments),
        ]
    )
    return status, output


def test_init_controller_writes_readable_options(tmp_path: Path) -> None:
    status, output = init(tmp_path, 'controller', '--no-check', *_SERVERS)
    assert status == 0
    assert output.stat().st_mode & 0o777 == 0o600
    conf = configuration.parse([], 'prog', [str(output)])
    assert conf.database.connection == 'sqlite:///no$where/db.sqlite'
    sections = read_sections(str(output))
    assert list(sections['placement']['username']) == ['cyborg_lite']
    valid = list_known_names(conf, sections)
    assert all(options.keys() <= valid[name] for name, options in sections.items())
    assert 'agent' not in sections


def test_init_compute_asks_for_nothing_of_controllers(tmp_path: Path) -> None:
    arguments = (*_SERVERS[:2], '--enabled-drivers', 'fake_driver,pci_driver')
    status, output = init(tmp_path, 'compute', '--no-check', *arguments)
    assert status == 0
    conf = configuration.parse([], 'prog', [str(output)])
    assert conf.agent.enabled_drivers == ['fake_driver', 'pci_driver']
    assert 'database' not in read_sections(str(output))


def test_init_reports_failed_checks(tmp_path: Path, capsys: Out) -> None:
    arguments = (*_SERVERS, '--enabled-drivers', 'no_driver')
    status, output = init(tmp_path, 'all', *arguments)
    assert status == 1
    assert output.exists()
    lines = capsys.readouterr().out.splitlines()
    for name in ('RabbitMQ', 'database', 'Keystone and Placement', 'drivers'):
        [line] = [line for line in lines if line.startswith(name)]
        assert not line.endswith('ok')
        assert 'ecret' not in line
    assert 'no_driver' in lines[-1]


def test_init_without_terminal_names_missing_flag(tmp_path: Path, capsys: Out) -> None:
    status, output = init(tmp_path, 'compute', '--no-check')
    assert status == 2
    # The advice concerns the command line, because there is no configuration yet.
    error = capsys.readouterr().err
    assert 'The option --transport-url is required. Correct the request.' in error
    assert not output.exists()


def test_init_value_of_several_lines_is_refused(tmp_path: Path, capsys: Out) -> None:
    arguments = ('--transport-url', 'rabbit://a\nb', '--enabled-drivers', 'fake_driver')
    status, output = init(tmp_path, 'compute', '--no-check', *arguments)
    error = capsys.readouterr().err
    assert (status, output.exists()) == (2, False)
    assert '--transport-url has several lines. Correct the request.' in error


def test_init_keeps_existing_file(tmp_path: Path) -> None:
    output = tmp_path / 'cyborg-lite.conf'
    output.write_text('# mine\n', encoding='utf-8')
    assert init(tmp_path, 'controller', '--no-check', *_SERVERS)[0] == 2
    assert output.read_text(encoding='utf-8') == '# mine\n'


class Terminal(io.StringIO):
    """Standard input of an operator."""

    def isatty(self) -> bool:
        return True


def test_init_on_terminal_asks_until_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, 'stdin', Terminal('\nfake_driver\n'))
    status, output = init(tmp_path, 'compute', '--no-check', *_SERVERS[:2])
    assert status == 0
    conf = configuration.parse([], 'prog', [str(output)])
    assert conf.agent.enabled_drivers == ['fake_driver']
