# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics that are read from the database at each scrape."""

import abc
from collections.abc import Iterable, Sequence
from typing import ClassVar

from oslo_log import log
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.base import CyborgError

LOG = log.getLogger(__name__)


class DatabaseCollector(Collector, abc.ABC):
    """Metrics of one subject. All conductors serve the same values."""

    subject: ClassVar[str]
    """For messages, with a capital."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics without samples.

        Registration calls this method. It must not open the database.
        """
        return self._create_families()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return the metrics, or nothing if the database does not answer."""
        families = self._create_families()
        try:
            self._add_samples(families)
        except CyborgError as error:
            # The other metrics matter most while the database is unreachable.
            LOG.error('%s metrics omitted from a scrape: %s', self.subject, error.text)
            return ()
        return families

    @abc.abstractmethod
    def _create_families(self) -> Sequence[GaugeMetricFamily]:
        """Return the metrics without samples."""

    @abc.abstractmethod
    def _add_samples(self, families: Sequence[GaugeMetricFamily]) -> None:
        """Read the database and add samples to the families.

        :raises CyborgError: the database does not answer
        """
