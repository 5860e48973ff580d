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
from cyborg_lite.model.attention import KINDS
from tests.servers.databases import database_fixture

database = database_fixture('sqlite')

ROOT: Final = Path(__file__).parents[3]
RUNBOOK: Final = (ROOT / 'doc' / 'source' / 'runbook.rst').read_text()
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
    general, _ = yaml.safe_load(RULES)['groups']
    alerts = [rule['alert'] for rule in general['rules']]
    assert re.findall(r'^   \* - ``(CyborgLite\w+)``$', PAGE, re.MULTILINE) == alerts


def test_kinds_have_alert_with_severity_and_runbook() -> None:
    _, group = yaml.safe_load(RULES)['groups']
    alerts = {rule['alert']: rule for rule in group['rules']}
    expected = {
        'CyborgLite' + kind.title().replace('_', ''): (kind, rule)
        for kind, rule in KINDS.items()
    }
    assert alerts.keys() == expected.keys()
    for name, (kind, rule) in expected.items():
        alert, notes = alerts[name], alerts[name]['annotations']
        assert alert['labels'] == {'severity': str(rule.severity)}
        assert f'cyborg_lite_attention{{kind="{kind}"}}' in alert['expr']
        assert rule.meaning in notes['summary']
        assert notes['runbook_url'].endswith(f'#{kind.replace("_", "-")}')


def test_runbook_has_section_and_command_per_kind() -> None:
    titles = re.findall(r'^([a-z-]+)\n=+$', RUNBOOK, re.MULTILINE)
    assert titles == [kind.replace('_', '-') for kind in KINDS]
    sections = re.split(r'^[a-z-]+\n=+$', RUNBOOK, flags=re.MULTILINE)[1:]
    for rule, section in zip(KINDS.values(), sections, strict=True):
        assert all(f'\n{part}\n' in section for part in ('Symptom', 'Cause', 'Command'))
        assert rule.command.partition(' {')[0] in section


def test_questions_on_call_need_only_client() -> None:
    table = RUNBOOK.partition('Questions on call')[2].partition('.. _quarantine')[0]
    answers = re.findall(r'^     - (.*(?:\n {7}.*)*)', table, re.MULTILINE)[1:]
    assert len(answers) == 8
    for answer in answers:
        commands = re.findall(r'``([a-z-]+\s[^`]+)``', answer)
        assert commands
        assert all(command.split()[0] == 'openstack' for command in commands)
