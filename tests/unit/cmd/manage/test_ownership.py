# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage ownership``."""

import json
import re
from collections.abc import Callable

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from tests.builders.provider_rows import add_device, change_device
from tests.builders.reports import HOST, card, report

Out = pytest.CaptureFixture[str]


@pytest.fixture
def options(write_config: Callable[..., list[str]]) -> list[str]:
    return [*write_config(), 'ownership']


def parse_owners(output: str) -> dict[str, str]:
    """Return the owner column by host, for one device per host."""
    rows = [re.split(r'  +', line) for line in output.splitlines()[1:4]]
    return {row[0]: row[4] for row in rows}


def test_ownership_prints_owner_of_each_device(
    options: list[str], database: Database, capsys: Out
) -> None:
    add_device(database, 'a', 'x')
    change_device(database, add_device(database, 'b', 'x'), conflict='and by Nova')
    withheld = add_device(database, 'c', 'x', resource_class=None)
    change_device(database, withheld, health_reason='boot VGA')
    assert main.main(options) == 1
    out = capsys.readouterr().out
    assert parse_owners(out) == {'a': 'this service', 'b': 'both', 'c': 'nobody'}
    assert 'boot VGA' in out


def test_ownership_of_host_lists_its_devices(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(reports.store_report, report(card(0x3B)))
    add_device(database, 'other', 'x')
    assert main.main([*options, '--host', HOST]) == 0
    out = capsys.readouterr().out
    assert '0000:3b:00.0' in out
    assert 'other' not in out


def test_ownership_json_has_stable_keys(
    options: list[str], database: Database, capsys: Out
) -> None:
    change_device(database, add_device(database, 'b', 'x'), conflict='and by Nova')
    assert main.main([*options, '--format', 'json']) == 1
    (device,) = json.loads(capsys.readouterr().out)
    assert (device['owner'], device['conflict']) == ('both', 'and by Nova')
    keys = 'hostname address vendor product model driver conflict schedulable reason'
    assert set(device) == {*keys.split(), 'owner'}


def test_ownership_without_devices_says_so(options: list[str], capsys: Out) -> None:
    assert main.main([*options, '--host', 'x']) == 0
    assert capsys.readouterr().out == 'No agent has reported a device of host x.\n'
