# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage cleaning``."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.builders.rows import HOST
from tests.builders.unclean_units import release_unit

Out = pytest.CaptureFixture[str]
Run = Callable[..., int]


@pytest.fixture
def run(write_config: Callable[..., list[str]]) -> Run:
    options = write_config()
    return lambda *words: main.main([*options, 'cleaning', *words])


def test_list_shows_units_that_wait_for_operator(
    run: Run, database: Database, capsys: Out
) -> None:
    assert run('list') == 0
    assert capsys.readouterr().out == 'All units are clean.\n'
    release_unit(database)
    assert run('list') == 0
    device = release_unit(database, CleaningPolicy.ONE_TIME)
    assert run('list', '--format', 'json') == 1
    output = capsys.readouterr().out
    units = json.loads(output[output.find('[') :])
    assert [unit['state'] for unit in units] == ['dirty', 'used']
    since = datetime.fromisoformat(units[1]['since'])
    assert timedelta() <= datetime.now(UTC) - since < timedelta(hours=1)
    run('list')
    header, _, line = capsys.readouterr().out.splitlines()
    columns = 'HOST DEVICE UNIT STATE STEP SINCE REASON'
    assert header.split() == columns.split()
    assert line.split()[:2] == [HOST, device]
