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

from cyborg_lite.conductor.metrics.database_metrics import (
    Families,
    build_collectors,
    name_kind,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs.queue import read_payload
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


_COUNTERS: Final[Families] = {
    'job_attempts': ('Attempts at jobs, by job type.', ('kind',)),
    'job_results': ('Ended attempts at jobs, by result.', ('kind', 'result')),
    'job_leases_lost': ('Jobs that another conductor has leased.', ('kind',)),
    'nova_events': ('Events sent to Nova, by the code of its answer.', ('code',)),
    'placement_calls': ('Calls of Placement.', ('method', 'status')),
    'agent_heartbeats': ('Heartbeats of agents.', ()),
    'refused_messages': ('Messages without a valid signature.', ('reason',)),
    'audit_findings': ('Findings of audits; each audit counts again.', ('problem',)),
    'notifications': ('Notifications for other services.', ('result',)),
}


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters = {
            name: Counter(f'cyborg_lite_{name}', text, labels, registry=self.registry)
            for name, (text, labels) in _COUNTERS.items()
        }
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

    # --- counting ---

    def count(self, name: str, *labels: str, number: int = 1) -> None:
        """Count events.

        :param name: of a counter, without the prefix of this service
        :param labels: their values
        """
        counter = self._counters[name]
        (counter.labels(*labels) if labels else counter).inc(number)

    def count_job(self, name: str, job: Job, *labels: str) -> None:
        """Count something that has happened to a job, whose type is the first label."""
        self.count(name, name_kind(job.type), *labels)

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

    def count_placement_call(self, method: str, status: int | None) -> None:
        """Count a call of Placement.

        :param status: HTTP status; None: Placement did not answer
        """
        self.count('placement_calls', method, 'none' if status is None else str(status))

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
        collectors = build_collectors(database, serves_each_device=serves_each_device)
        for collector in collectors:
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
