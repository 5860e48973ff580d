# SPDX-License-Identifier: Apache-2.0
"""Metrics that are read from the database at each scrape."""

import logging
from typing import Final

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.conductor.metrics.database_metrics import DatabaseCollector, Samples
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Deployable, Device
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.rows import HOST, add_arqs, add_card
from tests.builders.unclean_units import release_unit

VALUES: Final = {
    'health': 'failed',
    'telemetry': {'units_used': 2, 'temperature': 38.5, 'counters': {'fatal': 3}},
}


@pytest.fixture
def metrics(database: Database) -> Metrics:
    metrics = Metrics()
    metrics.add_database_metrics(database)
    return metrics


# --- units, ARQs and daemons ----------------------------------------------------------


def test_metrics_count_units_by_class_and_trait(
    database: Database, metrics: Metrics
) -> None:
    add_card(database, 3)
    add_card(database, 2, missing=True)
    values = {'traits': ['CUSTOM_A', 'CUSTOM_B', 'OWNER_CYBORG']}
    database.write(lambda session: session.execute(update(Deployable).values(values)))
    text = metrics.format_text()
    for availability, number in (('free', 3), ('used', 0), ('broken', 2)):
        value = f'availability="{availability}",resource_class="PGPU"'
        assert f'cyborg_lite_units{{{value}}} {number}.0' in text
        for trait in 'AB':
            by_trait = f'{value},trait="CUSTOM_{trait}"'
            assert f'cyborg_lite_units_by_trait{{{by_trait}}} {number}.0' in text
    assert 'OWNER_CYBORG' not in text


def test_metrics_of_arqs_and_daemons_have_zeros(
    database: Database, metrics: Metrics
) -> None:
    text = metrics.format_text()
    assert 'cyborg_lite_arqs{state="Bound"} 0.0' in text
    labels = 'binary="cyborg-lite-agent",state="down"'
    assert f'cyborg_lite_services{{{labels}}} 0.0' in text
    add_arqs(database, 2)
    assert 'cyborg_lite_arqs{state="Initial"} 2.0' in metrics.format_text()


# --- what waits for an operator -------------------------------------------------------


def test_metrics_count_unclean_units(database: Database, metrics: Metrics) -> None:
    assert '\ncyborg_lite_unclean_units{' not in metrics.format_text()
    release_unit(database)
    release_unit(database, CleaningPolicy.ONE_TIME)
    text = metrics.format_text()
    for state in ('dirty', 'used'):
        labels = f'hostname="{HOST}",state="{state}"'
        assert f'cyborg_lite_unclean_units{{{labels}}} 1.0\n' in text


def test_metrics_count_arqs_with_lost_device(
    database: Database, metrics: Metrics
) -> None:
    create_bound_arqs(database, 2)
    assert '\ncyborg_lite_lost_arqs{' not in metrics.format_text()
    statement = update(AttachHandle).values(missing=True)
    database.write(lambda session: session.execute(statement))
    assert f'cyborg_lite_lost_arqs{{hostname="{HOST}"}} 2.0' in metrics.format_text()


# --- devices --------------------------------------------------------------------------


def list_device_samples(metrics: Metrics) -> list[str]:
    """Return the samples of single devices."""
    return [
        line
        for line in metrics.format_text().splitlines()
        if line.startswith('cyborg_lite_device_')
    ]


def test_metrics_of_each_device_have_known_usage(database: Database) -> None:
    add_card(database, 1)
    metrics = Metrics()
    metrics.add_database_metrics(database, serves_each_device=True)
    assert '\ncyborg_lite_device_usage{' not in metrics.format_text()
    database.write(lambda session: session.execute(update(Device).values(VALUES)))
    lines = list_device_samples(metrics)
    for label, value in (
        ('health="failed"', '1.0'),
        ('figure="units_used"', '2.0'),
        ('figure="temperature"', '38.5'),
        ('kind="fatal"', '3.0'),
    ):
        assert any(label in line and line.endswith(f' {value}') for line in lines)
    assert len(lines) == 4


def test_series_do_not_grow_with_number_of_healthy_devices(
    database: Database, metrics: Metrics
) -> None:
    add_card(database, 1)
    number = len(metrics.format_text().splitlines())
    for card in range(2, 12):
        add_card(database, card)
    assert len(metrics.format_text().splitlines()) == number
    assert list_device_samples(metrics) == []
    assert 'cyborg_lite_devices{health="ok",' in metrics.format_text()
    database.write(lambda session: session.execute(update(Device).values(VALUES)))
    lines = list_device_samples(metrics)
    assert len(lines) == 11
    assert all('health="failed"' in line for line in lines)


# --- collectors -----------------------------------------------------------------------


class Colors(DatabaseCollector):
    """Collector whose read fails on request."""

    fails = False
    reads = 0

    def __init__(self, database: Database) -> None:
        families = {'colors': ('Colors.', ('name',))}
        super().__init__(database, 'Color', families, self.read_colors)

    def read_colors(self, _database: Database) -> Samples:
        self.reads += 1
        yield 'colors', ('red',), 1
        if self.fails:
            raise ServiceUnavailable(what='database')


def test_describe_reads_nothing(database: Database) -> None:
    colors = Colors(database)
    (family,) = colors.describe()
    assert (family.name, family.samples, colors.reads) == ('cyborg_lite_colors', [], 0)


def test_collect_failed_read_omits_all_samples(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    colors = Colors(database)
    colors.fails = True
    with caplog.at_level(logging.ERROR):
        assert list(colors.collect()) == []
    assert 'Color metrics omitted from a scrape' in caplog.text
