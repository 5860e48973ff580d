# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage import`` with a real database of Cyborg."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from tests.builders import cyborg_sample
from tests.doubles.instances import FakeInstances
from tests.doubles.placement import FakePlacement

Out = pytest.CaptureFixture[str]
Run = Callable[..., int]

_TABLES = (
    'device_profiles',
    'devices',
    'deployables',
    'attributes',
    'arqs',
    'attach_handles',
)
_EMPTY = dict.fromkeys(_TABLES, 0)
_FULL = dict(zip(_TABLES, (9, 2, 2, 4, 8, 32), strict=True))


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Return the URL of a database of Cyborg."""
    url = f'sqlite:///{tmp_path}/cyborg.sqlite'
    cyborg_sample.load(url)
    return url


@pytest.fixture
def run(
    write_config: Callable[..., list[str]],
    servers: FakeInstances,
    placement: FakePlacement,
    tmp_path: Path,
) -> Run:
    """Return a function that runs the command with further arguments."""
    options = [*write_config(), 'import', '--record', str(tmp_path / 'record')]
    return lambda *arguments: main.main([*options, *arguments])


@pytest.fixture
def target(database: Database, tmp_path: Path) -> str:
    """Return the URL of the database of this service."""
    return f'sqlite:///{tmp_path}/cyborg_lite.sqlite'


def count_rows(url: str) -> dict[str, int]:
    """Return the number of rows by table."""
    return {
        table: cyborg_sample.read(url, f'SELECT count(*) FROM {table}')[0][0]
        for table in _TABLES
    }


def read_reasons(output: str) -> dict[str, str]:
    """Return the reason of each note by uuid."""
    notes: list[dict[str, Any]] = json.loads(output)['notes']
    return {note['uuid']: note['reason'] for note in notes}


def test_import_sample_takes_all_rows(
    run: Run, source: str, target: str, placement: FakePlacement, capsys: Out
) -> None:
    placement.calls.clear()
    assert run('--from', source) == 0
    assert count_rows(target) == _FULL
    assert not placement.writes
    output = capsys.readouterr().out
    assert 'Cyborg 2026.2' in output
    assert '--undo' in output


def test_import_keeps_uuids_owners_and_providers(
    run: Run, source: str, target: str
) -> None:
    run('--from', source)
    statement = (
        'SELECT a.uuid, a.state, a.instance_uuid, a.project_id, h.uuid, d.rp_uuid '
        'FROM arqs a JOIN attach_handles h ON h.arq_uuid = a.uuid '
        'JOIN deployables d ON d.id = h.deployable_id'
    )
    expected = {
        (
            arq['uuid'],
            'Bound',
            arq['instance_uuid'],
            arq['project_id'],
            arq['attach_handle_uuid'],
            arq['device_rp_uuid'],
        )
        for arq in cyborg_sample.read_cloud()['accelerator_requests']
        if arq['state'] == 'Bound'
    }
    assert len(expected) == cyborg_sample.BOUND
    assert set(cyborg_sample.read(target, statement)) == expected


def test_import_dry_run_changes_nothing(
    run: Run, source: str, target: str, tmp_path: Path, capsys: Out
) -> None:
    assert run('--from', source, '--dry-run') == 0
    assert count_rows(target) == _EMPTY
    assert not (tmp_path / 'record').exists()
    assert 'Nothing is written.' in capsys.readouterr().out


def test_import_repeated_adds_only_new_rows(
    run: Run, source: str, target: str, capsys: Out
) -> None:
    run('--from', source)
    cyborg_sample.run(
        source,
        "INSERT INTO device_profiles VALUES ('2026-11-22 03:00:05', NULL, 10, "
        "'99999999-4729-4140-9b0c-0843657603e3', 'late', "
        '\'{"groups": [{"resources\\:PGPU": "1"}]}\', NULL)',
    )
    capsys.readouterr()
    assert run('--from', source, '--format', 'json') == 0
    document = json.loads(capsys.readouterr().out)
    assert count_rows(target) == _FULL | {'device_profiles': 10}
    assert document['imported_before'] == _FULL
    assert sum(map(len, document['imported'].values())) == 1


def test_undo_deletes_rows_of_all_runs(
    run: Run, source: str, target: str, tmp_path: Path
) -> None:
    run('--from', source)
    run('--from', source)
    assert run('--undo', str(tmp_path / 'record')) == 0
    assert count_rows(target) == _EMPTY
    assert run('--from', source) == 0


def test_undo_keeps_rows_in_use_since(
    run: Run, source: str, target: str, tmp_path: Path, capsys: Out
) -> None:
    run('--from', source)
    first = "SELECT min(uuid) FROM arqs WHERE state = 'Bound'"
    ((arq,),) = cyborg_sample.read(target, first)
    cyborg_sample.run(target, f"UPDATE arqs SET generation = 1 WHERE uuid = '{arq}'")
    capsys.readouterr()
    assert run('--undo', str(tmp_path / 'record'), '--format', 'json') == 1
    reasons = read_reasons(capsys.readouterr().out)
    assert 'bound again' in reasons[arq]
    counts = count_rows(target)
    assert (counts['arqs'], counts['attach_handles'], counts['devices']) == (1, 1, 1)
    assert counts['device_profiles'] == 1


def test_import_server_missing_in_nova_is_refused(
    run: Run, source: str, servers: FakeInstances, capsys: Out
) -> None:
    server, _host = servers.hosts.popitem()
    assert run('--from', source, '--format', 'json') == 1
    assert f'Nova has no server {server}' in capsys.readouterr().out


@pytest.mark.parametrize('schema', cyborg_sample.EARLIER)
def test_import_earlier_schema_is_read(
    run: Run, schema: str, target: str, tmp_path: Path, capsys: Out
) -> None:
    url = f'sqlite:///{tmp_path}/earlier.sqlite'
    cyborg_sample.load(url, schema)
    columns = "'2021-11-22 03:00:05', NULL, 1, '4085fec0-5d32-4aea-8394-2e5196b42234'"
    values = "'GPU', '0x10de', 'T4', '{}', NULL, 'vm'"
    status = ", 'maintaining'" if '6c77' in schema else ''
    cyborg_sample.run(
        url,
        f'INSERT INTO devices VALUES ({columns}, {values}{status})',
        f"INSERT INTO controlpath_ids VALUES ({columns}, 1, 'PCI', '{{\"domain\"\\: "
        '"0000", "bus"\\: "3b", "device"\\: "00", "function"\\: "0"}\')',
    )
    assert run('--from', url) == 0
    assert 'not a tested one' not in capsys.readouterr().out
    (row,) = cyborg_sample.read(target, 'SELECT status, hardware_id FROM devices')
    assert row[0] == ('maintaining' if status else 'enabled')


def test_import_unusable_source_returns_2(run: Run, target: str, capsys: Out) -> None:
    assert run('--from', target) == 2
    assert 'not that of Cyborg' in capsys.readouterr().err
    assert run('--from', 'nonsense') == 2
    assert 'The option --from is not a database URL.' in capsys.readouterr().err
