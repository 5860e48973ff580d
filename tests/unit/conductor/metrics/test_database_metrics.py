# SPDX-License-Identifier: Apache-2.0
"""Collectors that read the database at each scrape."""

import logging

import pytest

from cyborg_lite.conductor.metrics.database_metrics import DatabaseCollector, Samples
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.daemons import ServiceUnavailable


class Colors(DatabaseCollector):
    """Collector whose second read fails on request."""

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
