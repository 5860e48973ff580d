# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a conductor.

Counting is always on and costs little. ``[conductor] metrics_port`` decides whether the
metrics are served.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from cyborg_lite.conductor.metrics.database_metrics import build_collectors, name_kind
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs.payloads import read_payload
from cyborg_lite.model.jobs import Job, NovaEventPayload
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.monitoring.serving import serve_metrics

# Seconds: a bind takes 10 to 100 ms for passthrough, and minutes with a bitstream.
_BUCKETS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 240)

# Seconds: most stages take milliseconds; loading a bitstream takes minutes.
_STAGE_BUCKETS: Final = (0.005, *_BUCKETS)

# Values of the label `result`.
DONE: Final = 'done'
POSTPONED: Final = 'put-off'
EXPIRED: Final = 'expired'


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._attempts = self._add_counter(
            'job_attempts', 'Attempts at jobs, by job type.', 'kind'
        )
        self._results = self._add_counter(
            'job_results', 'Ended attempts at jobs, by result.', 'kind', 'result'
        )
        self._lost_leases = self._add_counter(
            'job_leases_lost', 'Jobs that another conductor has leased.', 'kind'
        )
        self._nova_events = self._add_counter(
            'nova_events', 'Events sent to Nova, by the code of its answer.', 'code'
        )
        self._placement_calls = self._add_counter(
            'placement_calls', 'Calls of Placement.', 'method', 'status'
        )
        self._heartbeats = self._add_counter(
            'agent_heartbeats', 'Heartbeats of agents.'
        )
        self._refused_messages = self._add_counter(
            'refused_messages', 'Messages without a valid signature.', 'reason'
        )
        self._findings = self._add_counter(
            'audit_findings', 'Findings of audits; each audit counts again.', 'problem'
        )
        self._notifications = self._add_counter(
            'notifications', 'Notifications for other services.', 'result'
        )
        self._bind_seconds = Histogram(
            'cyborg_lite_bind_seconds',
            'Time from the acceptance of a bind to its end.',
            ['result'],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._stage_seconds = Histogram(
            'cyborg_lite_bind_stage_seconds',
            'Time of one stage of a bind; a stage that is repeated counts again.',
            ['stage'],
            buckets=_STAGE_BUCKETS,
            registry=self.registry,
        )

    def _add_counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(
            f'cyborg_lite_{name}', documentation, labels, registry=self.registry
        )

    # --- counting ---

    def count_attempt(self, job: Job) -> None:
        """Count the start of an attempt at a job."""
        self._attempts.labels(name_kind(job.type)).inc()

    def count_result(self, job: Job, result: str) -> None:
        """Count the end of an attempt at a job.

        :param result: DONE, POSTPONED or EXPIRED
        """
        self._results.labels(name_kind(job.type), result).inc()

    def count_lost_lease(self, job: Job) -> None:
        """Count a job that another conductor has leased during an attempt."""
        self._lost_leases.labels(name_kind(job.type)).inc()

    def observe_replacement(
        self, job: Job, replacement: Job | None, seconds: float
    ) -> None:
        """Observe the duration of a bind when its job becomes the Nova event job.

        :param seconds: time since the job was written
        """
        if job.type == OperationKind.BIND and replacement is not None:
            event = read_payload(NovaEventPayload, replacement.payload)
            result = 'succeeded' if event.succeeded else 'failed'
            self._bind_seconds.labels(result).observe(seconds)

    def time_stage(self, stage: str) -> AbstractContextManager[object]:
        """Observe the duration of a stage of a bind, while the block runs."""
        return self._stage_seconds.labels(stage).time()

    def count_nova_failure(self) -> None:
        """Count a request for Nova that Nova did not answer."""
        self._nova_events.labels('none').inc()

    def count_nova_event(self, code: int | None) -> None:
        """Count an event for Nova.

        :param code: code of the answer; None: no Nova is configured
        """
        self._nova_events.labels('dropped' if code is None else str(code)).inc()

    def count_placement_call(self, method: str, status: int | None) -> None:
        """Count a call of Placement.

        :param status: HTTP status; None: Placement did not answer
        """
        status_label = 'none' if status is None else str(status)
        self._placement_calls.labels(method, status_label).inc()

    def count_finding(self, problem: str) -> None:
        """Count a finding of an audit."""
        self._findings.labels(problem).inc()

    def count_notifications(self, result: str, number: int) -> None:
        """Count notifications for other services.

        :param result: one of few
        """
        self._notifications.labels(result).inc(number)

    def count_refused_message(self, reason: str) -> None:
        """Count a message without a valid signature.

        :param reason: one of few
        """
        self._refused_messages.labels(reason).inc()

    def count_heartbeat(self) -> None:
        """Count a heartbeat of an agent."""
        self._heartbeats.inc()

    def observe_workers(self, workers: int, count_busy: Callable[[], int]) -> None:
        """Show the worker threads of the job runner.

        :param count_busy: called at each scrape; returns the number of leased jobs
        """
        for name, documentation, function in (
            ('job_workers', 'Worker threads for jobs.', lambda: workers),
            ('job_workers_busy', 'Worker threads that run a job.', count_busy),
        ):
            gauge = Gauge(f'cyborg_lite_{name}', documentation, registry=self.registry)
            gauge.set_function(function)

    # --- serving ---

    def add_database_metrics(
        self, database: Database, *, serves_each_device: bool = False
    ) -> None:
        """Add the job table and the devices, read from the database at each scrape."""
        for collector in build_collectors(
            database, serves_each_device=serves_each_device
        ):
            self.registry.register(collector)

    def format_text(self) -> str:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry).decode()

    def serve(self, address: str, ports: Iterable[int]) -> int:
        """Serve the metrics over HTTP on the first free port, until the process exits.

        :returns: the port
        :raises ConfigurationError: none of the ports is free
        """
        return serve_metrics(self.registry, address, ports, 'conductor')
