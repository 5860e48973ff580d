# SPDX-License-Identifier: Apache-2.0
"""Health and usage of devices, as those who collect figures read them."""

from sqlalchemy import update

from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Device
from tests.fakes.rows import add_card


def test_devices_show_their_health_and_what_is_known_of_their_usage(
    database: Database,
) -> None:
    add_card(database, 1)
    metrics = Metrics()
    metrics.watch(database)
    assert '\ncyborg_lite_device_usage{' not in metrics.text()
    told = {
        'health': 'failed',
        'figures': {'units_used': 2, 'temperature': 38.5, 'counters': {'fatal': 3}},
    }
    database.write(lambda session: session.execute(update(Device).values(told)))
    shown = [
        line
        for line in metrics.text().splitlines()
        if line.startswith('cyborg_lite_device_')
    ]
    for label, value in (
        ('health="failed"', '1.0'),
        ('figure="units_used"', '2.0'),
        ('figure="temperature"', '38.5'),
        ('kind="fatal"', '3.0'),
    ):
        assert any(label in line and line.endswith(f' {value}') for line in shown)
    assert len(shown) == 4
