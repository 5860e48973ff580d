# SPDX-License-Identifier: Apache-2.0
"""The dashboard has the form that Grafana imports.

Grafana is not in the package indexes of the tests. These rules are those of the
dashboard kind in its sources. ``tests/functional`` runs each query in Prometheus.
"""

import json
import re
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[3]
# Any, here and below: JSON.
DASHBOARD: Final[dict[str, Any]] = json.loads(
    (ROOT / 'etc' / 'grafana' / 'cyborg-lite.json').read_text()
)
PANELS: Final[list[dict[str, Any]]] = DASHBOARD['panels']
SOURCE: Final = {'type': 'prometheus', 'uid': '${datasource}'}

_COLUMNS: Final = 24
_FIRST_SCHEMA_WITH_SOURCE_OBJECTS: Final = 36
_DURATION: Final = re.compile(r'\d+[smhd]')
_VARIABLE: Final = re.compile(r'\$\{?(\w+)')
_BUILT_IN: Final = {'__rate_interval'}
_COUNTER: Final = re.compile(
    r'(?:_total|_sum|_count|_bucket)\b(?:{[^}]*})?(\[[^]]*\])?'
)
# Names of Grafana for the units of an axis.
_UNITS: Final = {'short', 'ops', 'reqps', 's'}

by_title = pytest.mark.parametrize(
    'panel', PANELS, ids=[panel['title'] for panel in PANELS]
)


def test_dashboard_has_identity_that_import_keeps() -> None:
    assert re.fullmatch(r'[A-Za-z0-9_-]{8,40}', DASHBOARD['uid'])
    # An id belongs to one Grafana; inputs would ask the user at each import.
    assert not {'id', '__inputs', '__requires', 'gnetId'} & DASHBOARD.keys()
    assert DASHBOARD['title']
    version = DASHBOARD['schemaVersion']
    assert isinstance(version, int)
    assert version >= _FIRST_SCHEMA_WITH_SOURCE_OBJECTS


def test_dashboard_has_valid_times() -> None:
    assert _DURATION.fullmatch(DASHBOARD['refresh'])
    assert DASHBOARD['time'] == {'from': 'now-6h', 'to': 'now'}
    assert DASHBOARD['timezone'] in ('browser', 'utc')
    assert DASHBOARD['graphTooltip'] in (0, 1, 2)


def test_variables_are_declared_and_used() -> None:
    variables = {item['name']: item for item in DASHBOARD['templating']['list']}
    assert variables['datasource']['type'] == 'datasource'
    assert variables['datasource']['query'] == 'prometheus'
    names = set(_VARIABLE.findall(json.dumps(PANELS)))
    assert names - _BUILT_IN == set(variables)


def test_panels_have_unique_ids_and_titles() -> None:
    for name in ('id', 'title'):
        values = [panel[name] for panel in PANELS]
        assert len(set(values)) == len(values)
    assert all(isinstance(panel['id'], int) and panel['id'] > 0 for panel in PANELS)


def test_panels_lie_apart_without_gaps() -> None:
    cells = [
        (x, y)
        for panel in PANELS
        for place in [panel['gridPos']]
        for x in range(place['x'], place['x'] + place['w'])
        for y in range(place['y'], place['y'] + place['h'])
    ]
    assert len(cells) == len(set(cells))
    height = max(y for _, y in cells) + 1
    assert set(cells) == {(x, y) for x in range(_COLUMNS) for y in range(height)}


@by_title
def test_panel_has_form_of_its_type(panel: dict[str, Any]) -> None:
    assert panel['type'] in ('stat', 'timeseries')
    assert panel['description']
    options = panel['options']
    if panel['type'] == 'stat':
        assert options['reduceOptions']['calcs'] == ['lastNotNull']
    else:
        assert options['tooltip'] == {'mode': 'multi', 'sort': 'desc'}
        assert options['legend']['showLegend'] is True
    defaults = panel['fieldConfig']['defaults']
    assert defaults['unit'] in _UNITS
    assert panel['fieldConfig']['overrides'] == []


@by_title
def test_panel_thresholds_rise_from_no_value(panel: dict[str, Any]) -> None:
    thresholds = panel['fieldConfig']['defaults'].get('thresholds')
    if thresholds is None:
        return
    assert thresholds['mode'] == 'absolute'
    first, *values = [step['value'] for step in thresholds['steps']]
    assert first is None
    assert all(low < high for low, high in pairwise(values))


@by_title
def test_panel_queries_use_variable_of_source(panel: dict[str, Any]) -> None:
    targets = panel['targets']
    assert panel['datasource'] == SOURCE
    assert [target['datasource'] for target in targets] == [SOURCE] * len(targets)
    references = [target['refId'] for target in targets]
    assert len(set(references)) == len(references)
    assert all(re.fullmatch('[A-Z]', reference) for reference in references)


def test_counters_have_interval_of_grafana() -> None:
    """A fixed interval shows nothing if it is shorter than two scrapes."""
    expressions = [target['expr'] for panel in PANELS for target in panel['targets']]
    intervals = list(chain.from_iterable(map(_COUNTER.findall, expressions)))
    assert intervals
    assert set(intervals) == {'[$__rate_interval]'}
