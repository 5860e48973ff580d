# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage ownership plan`` and ``check``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from tests.builders.reports import HOST, card, report

Out = pytest.CaptureFixture[str]
Run = Callable[..., int]
CARD, OTHER = '0000:3b:00.0', '0000:af:00.0'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / 'ownership.yaml'
    path.write_text(f'{HOST}:\n  {CARD}: cyborg\n  {OTHER}: nova\n')
    return path


@pytest.fixture
def run(write_config: Callable[..., list[str]], file: Path) -> Run:
    options = write_config()

    def run(command: str, *parameters: str) -> int:
        arguments = [*options, 'ownership', command, '--file', str(file), *parameters]
        return main.main(arguments)

    return run


def test_plan_prints_both_configurations(run: Run, capsys: Out) -> None:
    assert run('plan') == 0
    assert capsys.readouterr().out.splitlines() == [
        f'# Host {HOST}',
        '',
        '# nova.conf',
        '[pci]',
        f'device_spec = {{"address": "{OTHER}"}}',
        '',
        '# cyborg-lite.conf',
        '[agent]',
        f'excluded_devices = {OTHER}',
        '',
    ]
    assert run('plan', '--host', HOST, '--format', 'json') == 0
    lines = json.loads(capsys.readouterr().out)[HOST]
    assert {line['file'] for line in lines} == {'nova.conf', 'cyborg-lite.conf'}


def test_check_compares_reported_devices(
    run: Run, file: Path, database: Database, capsys: Out
) -> None:
    database.write(reports.store_report, report(card(0x3B)))
    assert run('check') == 0
    assert capsys.readouterr().out == (
        'The devices of 1 host match the ownership file.\n'
    )
    file.write_text(f'{HOST}:\n  {CARD}: nova\n')
    assert run('check') == 1
    assert 'This service reports the card' in capsys.readouterr().out
    assert run('check', '--host', HOST, '--format', 'json') == 1
    (problem,) = json.loads(capsys.readouterr().out)
    assert (problem['hostname'], problem['address']) == (HOST, CARD)
    assert (problem['owner'], set(problem)) == (
        'nova',
        {'hostname', 'address', 'owner', 'reason'},
    )


def test_check_compares_configuration_of_nova(
    run: Run, tmp_path: Path, database: Database, capsys: Out
) -> None:
    database.write(reports.store_report, report(card(0x3B)))
    nova = tmp_path / 'nova.conf'
    nova.write_text(f'[pci]\ndevice_spec = {{"address": "{OTHER}"}}\n')
    files = ('--nova-config', str(nova))
    assert run('check', '--host', HOST, *files) == 0
    nova.write_text(f'[pci]\ndevice_spec = {{"address": "{CARD}"}}\n')
    capsys.readouterr()
    assert run('check', '--host', HOST, *files, '--format', 'json') == 1
    problems = json.loads(capsys.readouterr().out)
    assert [(item['address'], item['owner']) for item in problems] == [
        (CARD, 'cyborg'),
        (OTHER, 'nova'),
    ]


def test_check_reads_files_of_nova_on_own_host(
    write_config: Callable[..., list[str]],
    tmp_path: Path,
    file: Path,
    database: Database,
    capsys: Out,
) -> None:
    nova = tmp_path / 'nova.conf'
    nova.write_text(f'[pci]\ndevice_spec = {{"address": "{OTHER}"}}\n')
    database.write(reports.store_report, report(card(0x3B)))
    command = ['ownership', 'check', '--file', str(file)]
    lines = f'[agent]\nnova_config_files = {nova}\n[DEFAULT]\nhost = '
    options = write_config(f'{lines}{HOST}\n')
    assert main.main([*options, *command]) == 0
    nova.write_text('')
    assert main.main([*options, *command]) == 1
    assert OTHER in capsys.readouterr().out
    # Another host may have other files.
    options = write_config(f'{lines}controller\n')
    assert main.main([*options, *command]) == 0


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['--nova-config', '/nova.conf'], 'Name the host of --nova-config'),
        (['--host', HOST, '--nova-config', '/missing/nova.conf'], 'Cannot read all of'),
    ],
)
def test_check_nova_config_invalid_arguments_fail(
    run: Run, database: Database, capsys: Out, arguments: list[str], message: str
) -> None:
    assert run('check', *arguments) == main.FAILURE
    assert message in capsys.readouterr().err


def test_check_without_file_fails(
    write_config: Callable[..., list[str]], capsys: Out
) -> None:
    assert main.main([*write_config(), 'ownership', 'check']) == main.FAILURE
    assert '[agent] ownership_file' in capsys.readouterr().err
