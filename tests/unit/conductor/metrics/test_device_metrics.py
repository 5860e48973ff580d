# SPDX-License-Identifier: Apache-2.0
"""Metrics of devices in the format of Prometheus."""

from typing import Final

from sqlalchemy import update

from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from tests.builders.rows import add_card

VALUES: Final = {
    'health': 'failed',
    'telemetry': {'units_used': 2, 'temperature': 38.5, 'counters': {'fatal': 3}},
}


def test_device_metrics_show_health_and_known_usage(database: Database) -> None:
    add_card(database, 1)
    metrics = Metrics()
    metrics.add_database_metrics(database, serves_each_device=True)
    assert '\ncyborg_lite_device_usage{' not in metrics.format_text()
    database.write(lambda session: session.execute(update(Device).values(VALUES)))
    lines = read_lines(metrics)
    for label, value in (
        ('health="failed"', '1.0'),
        ('figure="units_used"', '2.0'),
        ('figure="temperature"', '38.5'),
        ('kind="fatal"', '3.0'),
    ):
        assert any(label in line and line.endswith(f' {value}') for line in lines)
    assert len(lines) == 4


def test_series_do_not_grow_with_number_of_healthy_devices(database: Database) -> None:
    metrics = Metrics()
    metrics.add_database_metrics(database)
    add_card(database, 1)
    number = len(metrics.format_text().splitlines())
    for card in range(2, 12):
        add_card(database, card)
    assert len(metrics.format_text().splitlines()) == number
    assert read_lines(metrics) == []
    assert 'cyborg_lite_devices{health="ok",' in metrics.format_text()
    database.write(lambda session: session.execute(update(Device).values(VALUES)))
    assert len(read_lines(metrics)) == 11
    assert all('health="failed"' in line for line in read_lines(metrics))


def read_lines(metrics: Metrics) -> list[str]:
    """Return the samples of single devices."""
    return [
        line
        for line in metrics.format_text().splitlines()
        if line.startswith('cyborg_lite_device_')
    ]
