# SPDX-License-Identifier: Apache-2.0
"""Figures of a conductor, in the form that Prometheus collects.

Counting is always on and costs next to nothing. Whether the figures can be fetched is
the operator's choice, see ``[conductor] metrics_port``.
"""

from collections.abc import Iterable
from typing import Final

from oslo_log import log
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
    start_http_server,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from cyborg_lite.conductor.device_metrics import Devices
from cyborg_lite.db import job_table, jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import ConfigurationError, CyborgError
from cyborg_lite.model.jobs import Job, Kind

LOG = log.getLogger(__name__)

# Seconds: passthrough takes tens of milliseconds, a bitstream minutes.
_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 240)

DONE: Final = 'done'
PUT_OFF: Final = 'put-off'
EXPIRED: Final = 'expired'


class Metrics:
    """Those of one process; each method says that something has happened."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._attempts = self._counter('job_attempts', 'Jobs begun, by kind.', 'kind')
        self._jobs = self._counter(
            'job_results', 'Attempts at jobs that ended.', 'kind', 'result'
        )
        self._lost = self._counter(
            'job_leases_lost', 'Jobs that were taken over by another.', 'kind'
        )
        self._events = self._counter(
            'nova_events', 'Events by the code that Nova gave them.', 'code'
        )
        self._placement = self._counter(
            'placement_calls', 'Calls of Placement.', 'method', 'status'
        )
        self._heartbeats = self._counter('agent_heartbeats', 'Heartbeats of agents.')
        self._binds = Histogram(
            'cyborg_lite_bind_seconds',
            'From the acceptance of a bind to its end.',
            ['result'],
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f'cyborg_lite_{name}', what, labels, registry=self._registry)

    # --- what has happened ---

    def job_begun(self, job: Job) -> None:
        self._attempts.labels(job.kind).inc()

    def job_ended(self, job: Job, result: str) -> None:
        """One attempt at it: DONE, PUT_OFF or EXPIRED."""
        self._jobs.labels(job.kind, result).inc()

    def lease_lost(self, job: Job) -> None:
        self._lost.labels(job.kind).inc()

    def job_followed(self, job: Job, following: Job | None, seconds: float) -> None:
        """A job has become another, so many seconds after it was written."""
        if job.kind == Kind.BIND and following is not None:
            succeeded = following.payload.get('succeeded')
            result = 'succeeded' if succeeded else 'failed'
            self._binds.labels(result).observe(seconds)

    def event_answered(self, code: int | None) -> None:
        """:param code: None: there was no Nova to send it to"""
        self._events.labels('dropped' if code is None else str(code)).inc()

    def placement_answered(self, method: str, status: int | None) -> None:
        """:param status: None: it did not answer"""
        self._placement.labels(method, 'none' if status is None else str(status)).inc()

    def heartbeat_heard(self) -> None:
        self._heartbeats.inc()

    # --- who wants to know ---

    def watch(self, database: Database) -> None:
        """Show what all conductors share too, read whenever somebody asks."""
        self._registry.register(_Queue(database))
        self._registry.register(Devices(database))

    def text(self) -> str:
        """All figures as they are now."""
        return generate_latest(self._registry).decode()

    def serve(self, address: str, ports: Iterable[int]) -> int:
        """Serve them over HTTP on the first port that is free, and return that.

        It ends with the process.

        :raises ConfigurationError: none is
        """
        for port in ports:
            try:
                start_http_server(port, address, registry=self._registry)
            except OSError as error:
                LOG.debug('No metrics on %s port %d: %s', address, port, error)
                continue
            LOG.info('Metrics are served on %s port %d.', address, port)
            return port
        reason = f'[conductor] metrics_port: nothing is free there on {address}.'
        raise ConfigurationError(reason=reason)


class _Queue(Collector):
    """The job table. It is everybody's, so each conductor shows the same."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """By names alone: registering must not open the database."""
        return self._families()

    def collect(self) -> Iterable[GaugeMetricFamily]:
        numbers, ages = self._families()
        try:
            counts = self._database.read(jobs.count)
            oldest = self._database.read(job_table.longest_waits)
        except CyborgError as error:
            # The other figures are wanted all the more now.
            LOG.error('The metrics lack the queue of jobs: %s', error.text)
            return ()
        for count in counts:
            numbers.add_metric([count.kind, count.state], count.count)
        for kind, seconds in oldest.items():
            ages.add_metric([kind], seconds)
        return numbers, ages

    def _families(self) -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
        return (
            GaugeMetricFamily(
                'cyborg_lite_jobs',
                'Jobs that are not done.',
                labels=['kind', 'state'],
            ),
            GaugeMetricFamily(
                'cyborg_lite_job_queue_age_seconds',
                'For how long the oldest job that is due has waited for a runner.',
                labels=['kind'],
            ),
        )
