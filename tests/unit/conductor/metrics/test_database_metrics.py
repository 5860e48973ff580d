# SPDX-License-Identifier: Apache-2.0
"""Collectors that read the database at each scrape."""

import logging
from collections.abc import Sequence

import pytest
from prometheus_client.core import GaugeMetricFamily

from cyborg_lite.conductor.metrics.database_metrics import DatabaseCollector
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.daemons import ServiceUnavailable


class Colors(DatabaseCollector):
    """Collector whose second read fails on request."""

    subject = 'Color'
    fails = False
    reads = 0

    def _create_families(self) -> Sequence[GaugeMetricFamily]:
        return (GaugeMetricFamily('colors', 'Colors.', labels=['name']),)

    def _add_samples(self, families: Sequence[GaugeMetricFamily]) -> None:
        self.reads += 1
        families[0].add_metric(['red'], 1)
        if self.fails:
            raise ServiceUnavailable(what='database')


def test_describe_reads_nothing(database: Database) -> None:
    colors = Colors(database)
    (family,) = colors.describe()
    assert (family.name, family.samples, colors.reads) == ('colors', [], 0)


def test_collect_reads_again_at_each_scrape(database: Database) -> None:
    colors = Colors(database)
    for number in (1, 2):
        (family,) = colors.collect()
        assert (len(family.samples), colors.reads) == (1, number)


def test_collect_failed_read_omits_all_samples(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    colors = Colors(database)
    colors.fails = True
    with caplog.at_level(logging.ERROR):
        assert list(colors.collect()) == []
    assert 'Color metrics omitted from a scrape' in caplog.text
