# SPDX-License-Identifier: Apache-2.0
"""Metrics of units, ARQs and daemons in the format of Prometheus."""

from sqlalchemy import update

from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable
from tests.builders.rows import add_arqs, add_card


def read_metrics(database: Database) -> str:
    metrics = Metrics()
    metrics.add_database_metrics(database)
    return metrics.format_text()


def test_capacity_metrics_count_units_by_class_and_trait(database: Database) -> None:
    add_card(database, 3)
    add_card(database, 2, missing=True)
    values = {'traits': ['CUSTOM_A', 'CUSTOM_B', 'OWNER_CYBORG']}
    database.write(lambda session: session.execute(update(Deployable).values(values)))
    text = read_metrics(database)
    for availability, number in (('free', 3), ('used', 0), ('broken', 2)):
        value = f'availability="{availability}",resource_class="PGPU"'
        assert f'cyborg_lite_units{{{value}}} {number}.0' in text
        for trait in 'AB':
            by_trait = f'{value},trait="CUSTOM_{trait}"'
            assert f'cyborg_lite_units_by_trait{{{by_trait}}} {number}.0' in text
    assert 'OWNER_CYBORG' not in text


def test_capacity_metrics_export_zeros(database: Database) -> None:
    text = read_metrics(database)
    assert 'cyborg_lite_arqs{state="Bound"} 0.0' in text
    labels = 'binary="cyborg-lite-agent",state="down"'
    assert f'cyborg_lite_services{{{labels}}} 0.0' in text
    add_arqs(database, 2)
    assert 'cyborg_lite_arqs{state="Initial"} 2.0' in read_metrics(database)
