# SPDX-License-Identifier: Apache-2.0
"""The page on monitoring, the dashboard and the alert rules name existing metrics."""

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from cyborg_lite.api.metrics import ApiMetrics
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from tests.servers.databases import database_fixture

database = database_fixture('sqlite')

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = (ROOT / 'doc' / 'source' / 'monitoring.rst').read_text()
RULES: Final = (ROOT / 'etc' / 'prometheus' / 'cyborg-lite.rules.yml').read_text()
DASHBOARD: Final = (ROOT / 'etc' / 'grafana' / 'cyborg-lite.json').read_text()

_NAME: Final = re.compile(r'\bcyborg_lite_[a-z_]+')
_HISTOGRAM: Final = re.compile(r'_(bucket|sum|count)$')


@pytest.fixture
def metric_names(database: Database) -> set[str]:
    """Return the names of all metrics of the daemons."""
    metrics = Metrics()
    metrics.add_database_metrics(database)
    metrics.observe_workers(1, lambda: 0)
    return {
        family.name + ('_total' if family.type == 'counter' else '')
        for registry in (metrics.registry, ApiMetrics().registry)
        for family in registry.collect()
    }


def test_page_has_row_per_exported_metric(metric_names: set[str]) -> None:
    rows = re.findall(r'^   \* - ``(cyborg_lite_\w+)``$', PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(metric_names)


@pytest.mark.parametrize('text', [RULES, DASHBOARD], ids=['rules', 'dashboard'])
def test_queries_use_exported_metrics(metric_names: set[str], text: str) -> None:
    names = {_HISTOGRAM.sub('', name) for name in _NAME.findall(text)}
    assert names
    assert names <= metric_names


def test_page_has_row_per_alert() -> None:
    (group,) = yaml.safe_load(RULES)['groups']
    alerts = [rule['alert'] for rule in group['rules']]
    assert re.findall(r'^   \* - ``(CyborgLite\w+)``$', PAGE, re.MULTILINE) == alerts
