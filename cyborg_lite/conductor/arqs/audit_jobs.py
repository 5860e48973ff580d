# SPDX-License-Identifier: Apache-2.0
"""The audit job, and the loop that schedules it."""

import logging
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.arqs.audit import Audit
from cyborg_lite.conductor.ownership.sharing import SharingCheck, SharingFinding
from cyborg_lite.conductor.periodic import repeat
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.incarnations import find_quarantine
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.arqs.audit import AuditReport, Remedy
from cyborg_lite.model.hosts.services import CONDUCTOR, ServiceState
from cyborg_lite.model.jobs import Job, NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.ownership.allocations import UnownedAllocation
from cyborg_lite.model.queries import Query

LOG = log.getLogger(__name__)

_MAX_FINDINGS: Final = 100  # in the result of an operation
_KEY: Final = 'orphans'  # at most one unfinished audit job in the deployment


@dataclass(frozen=True, slots=True)
class AuditHandler:
    """Runs audit jobs: logs all findings, and applies their remedies if permitted."""

    database: Database
    audit: Audit
    reap: bool  # True: apply remedies; False: only log the findings
    sharing: SharingCheck | None = None  # finds conflicts with Nova; None: do not check
    # Called for each finding, for the metrics.
    count_finding: Callable[[str], None] = lambda problem: None

    def run(self, job: Job) -> Job | None:
        """Run one audit."""
        report = self.audit.find_orphans()
        _log_report(report)
        for finding in report.findings:
            self.count_finding(finding.problem)
        reaps = self.reap and self.database.read(find_quarantine) is None
        for finding in report.findings if reaps else ():
            if self.audit.apply_remedy(finding, job.request_id):
                LOG.warning(
                    'Audit: remedy applied to ARQ %s: %s',
                    finding.suspect.uuid,
                    finding.remedy,
                )
        self.audit.delete_former_servers()
        unowned, failed_checks = self._check_placement()
        if job.operations:
            checks = (*report.failed_checks, *failed_checks)
            result = {
                'findings': _describe(report, unowned)[:_MAX_FINDINGS],
                'failed_checks': checks,
            }
            self.database.write(operations.record_result, job.operations, result)
        self.database.write(queue.finish_job, job)
        return None

    def _check_placement(
        self,
    ) -> tuple[tuple[UnownedAllocation, ...], tuple[str, ...]]:
        """Log what is wrong in Placement.

        :returns: the allocations without an ARQ, and the checks that could not be made
        """
        allocations = self.audit.allocations
        unowned: tuple[UnownedAllocation, ...] = ()
        try:
            unowned = allocations.find_unowned()
            findings: list[UnownedAllocation | SharingFinding] = [*unowned]
            if self.sharing is not None:
                for hostname in self.database.read(device_owners.list_hosts):
                    findings += self.sharing.check_host(hostname)
                    allocations.pace.pause()
        except CyborgError as error:
            check = f'Placement is not checked: {error.text}'
            LOG.warning('Audit is incomplete: %s', check)
            return unowned, (check,)
        for finding in findings:
            self.count_finding(finding.problem or '')
            LOG.warning(
                'Audit: %s, host %s, provider %s (%s): %s',
                finding.problem,
                finding.hostname,
                finding.provider_name,
                finding.rp_uuid,
                finding.reason,
            )
        return unowned, ()

    def expire(self, job: Job, reason: str) -> Job | None:
        """Finish the job: the next audit does the same work."""
        self.database.write(queue.finish_job, job, reason)
        return None


def _describe(
    report: AuditReport, unowned: Sequence[UnownedAllocation]
) -> list[dict[str, str | None]]:
    """Return the findings as JSON; those of an allocation have no ARQ."""
    of_arqs: list[dict[str, str | None]] = [
        {
            'problem': finding.problem,
            'arq': finding.suspect.uuid,
            'reason': finding.reason,
            'remedy': finding.remedy,
        }
        for finding in report.findings
    ]
    of_allocations: list[dict[str, str | None]] = [
        {
            'problem': item.problem,
            'arq': None,
            'consumer': item.consumer_uuid,
            'provider': item.rp_uuid,
            'host': item.hostname,
            'since': str(item.unowned_since),
            'reason': item.reason,
            'remedy': None if item.has_server else Remedy.CLEAR,
        }
        for item in unowned
    ]
    return of_arqs + of_allocations


def _log_report(report: AuditReport) -> None:
    for check in report.failed_checks:
        LOG.warning('Audit is incomplete: %s', check)
    for finding in report.findings:
        LOG.warning(
            'Audit: %s, ARQ %s: %s',
            finding.problem,
            finding.suspect.uuid,
            finding.reason,
        )
    level = logging.INFO if report.findings else logging.DEBUG
    LOG.log(level, 'Audit completed with %d findings', len(report.findings))


def build_audit_job(request_id: str | None = None) -> NewJob:
    """Return the audit job of the deployment.

    :param request_id: of the API request; None: no request has caused the job
    """
    return NewJob(OperationKind.AUDIT, key=_KEY, request_id=request_id)


@dataclass(frozen=True, slots=True)
class AuditScheduler:
    """Schedules audit jobs. Any number of conductors may run it.

    Each conductor waits longer the more conductors there are, so that the deployment
    as a whole audits once per interval.
    """

    database: Database
    wake: Callable[[], None]  # called when a job was written
    interval: float  # seconds between two audits; 0: never
    stopping: threading.Event

    def run(self) -> None:
        """Schedule jobs until the stop event is set."""
        subject = 'Scheduling the audit of ARQs'
        if self.interval:
            repeat(self._schedule, subject, self.choose_pause, self.stopping)

    def _schedule(self) -> None:
        self.database.write(queue.add_job, build_audit_job())
        self.wake()

    def choose_pause(self) -> float:
        """Return the seconds to wait, with jitter to spread the conductors."""
        filters = {'binary': (CONDUCTOR,), 'state': (ServiceState.UP.value,)}
        try:
            conductors = self.database.read(
                services.list_services, Query(filters=filters)
            )
        except CyborgError as error:
            LOG.error('Counting the conductors for the audit failed: %s', error.text)
            conductors = ()
        return self.interval * max(1, len(conductors)) * random.uniform(0.8, 1.2)
