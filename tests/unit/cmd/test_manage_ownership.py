# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-manage ownership as an operator runs it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.cmd import manage
from cyborg_lite.db import inventory, migration
from cyborg_lite.db.engine import Database
from tests.fakes.cards import HOST, card, report
from tests.fakes.provider_rows import add_device, change_device

Out = pytest.CaptureFixture[str]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    address = f'sqlite:///{tmp_path}/db.sqlite'
    migration.upgrade(address)
    opened = Database(address)
    yield opened
    opened.close()


@pytest.fixture
def options(tmp_path: Path, database: Database) -> list[str]:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/db.sqlite\n')
    return ['--config-file', str(file), 'ownership']


def owners(output: str) -> dict[str, str]:
    """By host, of one device each."""
    rows = [re.split(r'  +', line) for line in output.splitlines()[1:4]]
    return {row[0]: row[4] for row in rows}


def test_each_device_has_an_owner(
    options: list[str], database: Database, capsys: Out
) -> None:
    add_device(database, 'a', 'x')
    change_device(database, add_device(database, 'b', 'x'), conflict='and by Nova')
    withheld = add_device(database, 'c', 'x', resource_class=None)
    change_device(database, withheld, health_reason='boot VGA')
    assert manage.main(options) == 1
    out = capsys.readouterr().out
    assert owners(out) == {'a': 'this service', 'b': 'both', 'c': 'nobody'}
    assert 'boot VGA' in out
    assert 'of b to Nova alone' in out
    assert 'of a to Nova alone' not in out


def test_the_lines_for_either_side_are_printed_for_a_host(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(inventory.store, report(card(0x3B)))
    assert manage.main([*options, '--host', HOST]) == 0
    out = capsys.readouterr().out
    for line in (
        'nova.conf: [pci] device_spec = {"address": "0000:3b:00.0"}',
        'nova.conf: [pci] alias = {"vendor_id": "10de", "product_id": "1eb8", '
        '"name": "10de-1eb8"}',
        'cyborg-lite.conf: [agent] excluded_devices = 0000:3b:00.0',
        'nova.conf: no [pci] device_spec that fits 0000:3b:00.0',
    ):
        assert line in out


def test_programs_read_json(
    options: list[str], database: Database, capsys: Out
) -> None:
    change_device(database, add_device(database, 'b', 'x'), conflict='and by Nova')
    assert manage.main([*options, '--format', 'json']) == 1
    (device,) = json.loads(capsys.readouterr().out)
    assert (device['owner'], device['conflict']) == ('both', 'and by Nova')
    assert device['for_nova']


def test_no_devices_are_said_to_be_none(options: list[str], capsys: Out) -> None:
    assert manage.main([*options, '--host', 'x']) == 0
    assert capsys.readouterr().out == 'No agent has reported a device of host x.\n'
