# SPDX-License-Identifier: Apache-2.0
"""Device profiles are exported with their access lists, and imported again."""

import json
from pathlib import Path
from typing import Any

import pytest
from osc_lib import exceptions

from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import OTHER_PROJECT, PROJECT, Client


@pytest.fixture
def file(client: Client, tmp_path: Path) -> Path:
    """Return the export of a public and a private profile."""
    client.create_profile('dp1', {'resources:FPGA': '1'})
    options = {
        'accel:selector': 'device.vendor == "10de"',
        'resources:VGPU': '1',
        'alternatives': [{'resources:PGPU': '1'}],
    }
    body = [{'name': 'dp2', 'groups': [options], 'enabled': False, 'is_public': False}]
    assert client.at('2.7').post('/device_profiles', body).status == 201
    run_command(client, 'profile access add', 'dp2', PROJECT)
    run_command(client, 'device profile export', str(tmp_path / 'profiles.json'))
    return tmp_path / 'profiles.json'


def export(client: Client, file: Path) -> Any:
    run_command(client, 'device profile export', str(file))
    return json.loads(file.read_text())


def import_file(client: Client, file: Path) -> dict[str, str]:
    rows = read_json(client, 'device profile import', str(file))
    return {row['Name']: row['Result'] for row in rows}


def test_export_is_imported_after_loss(client: Client, file: Path) -> None:
    content = json.loads(file.read_text())
    assert [item['projects'] for item in content] == [[], [PROJECT]]
    for item in content:
        client.delete(f'/device_profiles/{item["uuid"]}')
    assert import_file(client, file) == {'dp1': 'created', 'dp2': 'created'}
    assert export(client, file) == content
    assert import_file(client, file) == {'dp1': 'unchanged', 'dp2': 'unchanged'}


def test_import_adds_projects_and_removes_none(client: Client, file: Path) -> None:
    run_command(client, 'profile access remove', 'dp2', PROJECT)
    run_command(client, 'profile access add', 'dp2', OTHER_PROJECT)
    assert import_file(client, file)['dp2'] == f'shared with {PROJECT}'
    (projects,) = (i['projects'] for i in export(client, file) if i['name'] == 'dp2')
    assert sorted(projects) == sorted([PROJECT, OTHER_PROJECT])


def test_conflict_changes_nothing(client: Client, file: Path) -> None:
    run_command(client, 'profile set', 'dp2', '--description', 'theirs', '--public')
    uuid = json.loads(file.read_text())[0]['uuid']
    client.delete(f'/device_profiles/{uuid}')
    text = 'dp2 exists: description, is_public differ'
    with pytest.raises(exceptions.CommandError, match=text):
        import_file(client, file)
    names = [row['Name'] for row in read_json(client, 'profile list')]
    assert names == ['dp2']


@pytest.mark.parametrize('text', ['', '{"a": 1}', '[{"name": "dp1"}]', '[1]'])
def test_other_file_is_refused(client: Client, tmp_path: Path, text: str) -> None:
    file = tmp_path / 'other.json'
    file.write_text(text)
    with pytest.raises(exceptions.CommandError, match='no export'):
        import_file(client, file)
