# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage ownership``."""

import json
import re

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from tests.builders.provider_rows import add_device, change_device
from tests.builders.reports import HOST, card, report
from tests.unit.cmd.manage.conftest import Manage


def parse_owners(output: str) -> dict[str, str]:
    """Return the owner column by host, for one device per host."""
    rows = [re.split(r'  +', line) for line in output.splitlines()[1:4]]
    return {row[0]: row[4] for row in rows}


def test_ownership_prints_owner_of_each_device(
    manage: Manage, database: Database
) -> None:
    add_device(database, 'a', 'x')
    change_device(database, add_device(database, 'b', 'x'), conflict='and by Nova')
    withheld = add_device(database, 'c', 'x', resource_class=None)
    change_device(database, withheld, health_reason='boot VGA')
    status, out, _ = manage('ownership')
    assert status == 1
    assert parse_owners(out) == {'a': 'this service', 'b': 'both', 'c': 'nobody'}
    assert 'boot VGA' in out


def test_ownership_of_host_lists_its_devices(
    manage: Manage, database: Database
) -> None:
    database.write(reports.store_report, report(card(0x3B)))
    add_device(database, 'other', 'x')
    status, out, _ = manage('ownership', '--host', HOST)
    assert status == 0
    assert '0000:3b:00.0' in out
    assert 'other' not in out


def test_ownership_json_has_stable_keys(manage: Manage, database: Database) -> None:
    change_device(database, add_device(database, 'b', 'x'), conflict='and by Nova')
    status, out, _ = manage('ownership', '--format', 'json')
    (device,) = json.loads(out)
    assert status == 1
    assert (device['owner'], device['conflict']) == ('both', 'and by Nova')
    keys = 'hostname address vendor product model driver conflict schedulable reason'
    assert set(device) == {*keys.split(), 'owner'}


def test_ownership_without_devices_says_so(manage: Manage) -> None:
    text = 'No agent has reported a device of host x.\n'
    assert manage('ownership', '--host', 'x') == (0, text, '')
