# SPDX-License-Identifier: Apache-2.0
"""Tests of ``device configuration`` and ``device reconfigure``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import select, update

from cyborg_lite.cmd import manage
from cyborg_lite.db.engine import Database
from cyborg_lite.db.jobs import administration
from cyborg_lite.db.tables import Device, Reconfiguration
from cyborg_lite.model.jobs import JobType
from tests.builders.rows import HOST, add_card

Out = pytest.CaptureFixture[str]


@pytest.fixture
def options(write_config: Callable[..., list[str]], tmp_path: Path) -> list[str]:
    path = tmp_path / 'sets.yaml'
    (tmp_path / 'hosts.yml').touch()
    path.write_text(
        f'directory: {tmp_path}\ninventory: hosts.yml\nsets:\n'
        f'  gpu: {{setup: s.yml, teardown: t.yml, devices: {{host: [{HOST}]}}, '
        'settings: {count: {type: integer}}, required: [count]}\n',
        encoding='utf-8',
    )
    return [*write_config(f'[conductor]\nhardware_sets = {path}\n'), 'device']


@pytest.fixture
def device(database: Database) -> str:
    add_card(database, 1)
    return str(database.read(lambda session: session.scalar(select(Device.uuid))))


def test_reconfigure_writes_job(
    options: list[str], database: Database, device: str, capsys: Out
) -> None:
    command = [*options, 'reconfigure', device, '--set', 'gpu', '--setting', 'count=4']
    assert manage.main(command) == 0
    assert device in capsys.readouterr().out
    (job,) = database.read(administration.list_jobs, [JobType.RECONFIGURE])
    assert job.key == device
    assert manage.main([*options, 'configuration', device, '--format', 'json']) == 0
    (change,) = json.loads(capsys.readouterr().out)['changes']
    assert (change['settings'], change['state']) == ({'count': 4}, 'waiting')


def test_reconfigure_without_required_setting_fails(
    options: list[str], device: str, capsys: Out
) -> None:
    command = [*options, 'reconfigure', device, '--set', 'gpu']
    assert manage.main(command) == manage.FAILURE
    assert "'count' is a required property" in capsys.readouterr().err


def test_configuration_prints_log_of_failed_change(
    options: list[str], database: Database, device: str, capsys: Out
) -> None:
    command = [*options, 'reconfigure', device, '--set', 'gpu', '--setting', 'count=4']
    manage.main(command)
    values = {'state': 'failed', 'reason': 'It failed.', 'log': 'setup: A: ok'}
    failed = update(Reconfiguration).values(**values)
    database.write(lambda session: session.execute(failed))
    capsys.readouterr()
    assert manage.main([*options, 'configuration', device]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f'Hardware sets of device {device}: gpu'
    assert lines[1] == '  gpu: count (required) {"type": "integer"}'
    assert lines[-2:] == ['  It failed.', '  setup: A: ok']
