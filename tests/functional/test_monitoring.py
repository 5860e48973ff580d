# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alert rules on a real Prometheus that scrapes the daemons."""

import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from devstack.launcher.configuration import free_port
from tests.servers import rabbitmq
from tests.servers.prometheus import RULES, Prometheus, is_installed, prometheus
from tests.servers.stack import Cloud

ROOT: Final = Path(__file__).parents[2]
DASHBOARD: Final = ROOT / 'etc' / 'grafana' / 'cyborg-lite.json'
# One counter of each daemon: Prometheus scrapes the daemons at different times.
COUNTERS: Final = (
    'cyborg_lite_nova_events_total',
    'cyborg_lite_api_request_seconds_count{method="PATCH"}',
)

pytestmark = pytest.mark.skipif(
    not is_installed(), reason='needs the package prometheus'
)


@pytest.fixture(scope='module')
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Yield a Prometheus that scrapes a conductor and an API after some binds."""
    directory = tmp_path_factory.mktemp('monitoring')
    ports = free_port(), free_port()
    options = {
        section: {'metrics_port': port}
        for section, port in zip(('conductor', 'api'), ports, strict=True)
    }
    connection = f'sqlite:///{directory / "db.sqlite"}'
    with (
        rabbitmq.virtual_host() as bus,
        Cloud(
            directory, transport_url=bus, connection=connection, options=options
        ) as cloud,
        prometheus(directory, ports) as server,
    ):
        cloud.migrate()
        for daemon in ('conductor', 'agent', 'api'):
            cloud.start(daemon)
        add_backlog(directory / 'db.sqlite')
        # A rate is positive after a scrape before and a scrape after an increment.
        for template in ('{counter} > 0', 'rate({counter}[1h]) > 0'):
            cloud.boot_bound('FPGA')
            for counter in COUNTERS:
                expression = template.format(counter=counter)
                cloud.until(partial(server.query, expression), expression)
        yield server


def add_backlog(database: Path) -> None:
    """Write a due job of an unknown type, and a unit that waits for an operator."""
    values = str(uuid4()), 'of-later-release', 'waiting', '{}'
    with closing(sqlite3.connect(database, timeout=30)) as connection, connection:
        connection.execute(
            'INSERT INTO jobs (uuid, kind, state, payload, rerun_requested, step, '
            'attempts, run_after, lease, last_error, created_at) '
            "VALUES (?, ?, ?, ?, 0, '', 0, 1, 0, '', 1)",
            values,
        )
        connection.execute(
            "UPDATE attach_handles SET clean_state = 'used' "
            'WHERE id = (SELECT max(id) FROM attach_handles)'
        )


def list_queries() -> list[tuple[str, str]]:
    """Return query and legend of each curve, with an interval for the variable."""
    return [
        (target['expr'].replace('$__rate_interval', '1h'), target['legendFormat'])
        for panel in json.loads(DASHBOARD.read_text())['panels']
        for target in panel['targets']
    ]


@pytest.mark.parametrize(('expression', 'legend'), list_queries())
def test_dashboard_query_returns_series(
    server: Prometheus, expression: str, legend: str
) -> None:
    series = server.query(expression)
    assert series
    assert any(entry['value'][1] != 'NaN' for entry in series)
    labels = set(re.findall(r'{{(\w+)}}', legend))
    # Without a label in the legend, several curves would have the same name.
    assert all(labels == set(entry['metric']) for entry in series)


def test_alert_rules_are_evaluated(server: Prometheus) -> None:
    (group,) = server.ask('rules')['groups']
    errors = {rule['name']: rule.get('lastError') for rule in group['rules']}
    assert set(errors.values()) <= {None, ''}, errors
    assert len(errors) == 15
    assert {rule['health'] for rule in group['rules']} <= {'ok', 'unknown'}


def test_alert_rules_pass_their_tests(tmp_path: Path) -> None:
    rules = shutil.copy(RULES / 'cyborg-lite.rules.yml', tmp_path)
    folder = Path(__file__).parent / 'prometheus'
    tests = shutil.copy(folder / 'rules_test.yml', tmp_path)
    for arguments in (('check', rules), ('test', tests)):
        command, file = arguments
        result = subprocess.run(
            ['promtool', command, 'rules', str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
