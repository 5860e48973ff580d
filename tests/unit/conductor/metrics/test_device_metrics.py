# SPDX-License-Identifier: Apache-2.0
"""Metrics of devices in the format of Prometheus."""

from sqlalchemy import update

from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from tests.builders.rows import add_card


def test_device_metrics_show_health_and_known_usage(database: Database) -> None:
    add_card(database, 1)
    metrics = Metrics()
    metrics.add_database_metrics(database)
    assert '\ncyborg_lite_device_usage{' not in metrics.format_text()
    values = {
        'health': 'failed',
        'telemetry': {'units_used': 2, 'temperature': 38.5, 'counters': {'fatal': 3}},
    }
    database.write(lambda session: session.execute(update(Device).values(values)))
    lines = [
        line
        for line in metrics.format_text().splitlines()
        if line.startswith('cyborg_lite_device_')
    ]
    for label, value in (
        ('health="failed"', '1.0'),
        ('figure="units_used"', '2.0'),
        ('figure="temperature"', '38.5'),
        ('kind="fatal"', '3.0'),
    ):
        assert any(label in line and line.endswith(f' {value}') for line in lines)
    assert len(lines) == 4
