# SPDX-License-Identifier: Apache-2.0
"""Metrics of devices in the format of Prometheus."""

from sqlalchemy import update

from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.arqs import binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Device
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB, BOUND_EVENT_JOB
from tests.builders.rows import HOST, OWNER, add_arqs, add_card, bindings
from tests.builders.unclean_units import release_unit


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


def test_device_metrics_count_unclean_units(database: Database) -> None:
    metrics = Metrics()
    metrics.add_database_metrics(database)
    assert '\ncyborg_lite_unclean_units{' not in metrics.format_text()
    release_unit(database)
    release_unit(database, CleaningPolicy.ONE_TIME)
    text = metrics.format_text()
    for state in ('dirty', 'used'):
        labels = f'hostname="{HOST}",state="{state}"'
        assert f'cyborg_lite_unclean_units{{{labels}}} 1.0\n' in text


def test_device_metrics_count_arqs_with_lost_device(database: Database) -> None:
    metrics = Metrics()
    metrics.add_database_metrics(database)
    uuids, card = add_arqs(database, 2), add_card(database, 2)
    job = database.write(
        binding.accept_bind, bindings(uuids, card), ANY_PROJECT, BIND_JOB, OWNER
    )
    database.write(binding.claim_for_bind, job, uuids, None, BOUND_EVENT_JOB)
    assert '\ncyborg_lite_lost_arqs{' not in metrics.format_text()
    statement = update(AttachHandle).values(missing=True)
    database.write(lambda session: session.execute(statement))
    assert f'cyborg_lite_lost_arqs{{hostname="{HOST}"}} 2.0' in metrics.format_text()
