# SPDX-License-Identifier: Apache-2.0
"""Tests of the metrics of what waits for an operator."""

from sqlalchemy import update

from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.arqs import binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB, BOUND_EVENT_JOB
from tests.builders.rows import HOST, OWNER, add_arqs, add_card, bindings
from tests.builders.unclean_units import release_unit


def test_metrics_count_unclean_units(database: Database) -> None:
    metrics = Metrics()
    metrics.add_database_metrics(database)
    assert '\ncyborg_lite_unclean_units{' not in metrics.format_text()
    release_unit(database)
    release_unit(database, CleaningPolicy.ONE_TIME)
    text = metrics.format_text()
    for state in ('dirty', 'used'):
        labels = f'hostname="{HOST}",state="{state}"'
        assert f'cyborg_lite_unclean_units{{{labels}}} 1.0\n' in text


def test_metrics_count_arqs_with_lost_device(database: Database) -> None:
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
