# SPDX-License-Identifier: Apache-2.0
"""The audit: ARQs and handles whose instance or job no longer exists.

If Nova or Placement does not answer, the audit concludes nothing. ARQs and handles that
changed within the grace period are skipped. An instance that may be running never loses
its device.
"""

import logging
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from oslo_log import log

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.ownership.allocations import AllocationCheck, Pace
from cyborg_lite.conductor.ownership.sharing import SharingCheck, SharingFinding
from cyborg_lite.conductor.periodic import repeat
from cyborg_lite.db.arqs import audit, occupied_handles
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.incarnations import find_quarantine
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.db.ownership import allocations, device_owners
from cyborg_lite.db.profiles import former_servers
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.arqs.audit import (
    AuditFinding,
    AuditProblem,
    AuditReport,
    Remedy,
    Suspect,
)
from cyborg_lite.model.hosts.services import CONDUCTOR, ServiceState
from cyborg_lite.model.jobs import AuditPayload, Job, NewJob
from cyborg_lite.model.ownership.allocations import UnownedAllocation
from cyborg_lite.model.queries import Query

LOG = log.getLogger(__name__)

_PAGE_SIZE: Final = 1000  # rows
_INSTANCES_UNKNOWN: Final = 'Deleted instances cannot be determined'


@dataclass(frozen=True, slots=True)
class AuditRules:
    """Options of the operator for audits."""

    grace: float  # seconds since the last change of an ARQ or handle
    require_allocation: bool  # False: an instance may have a device without allocation
    pace: Pace


@dataclass(frozen=True, slots=True)
class Audit:
    """Finds ARQs and handles that nothing needs, and applies remedies on request."""

    database: Database
    nova: Nova
    placement: Placement
    rules: AuditRules

    @property
    def allocations(self) -> AllocationCheck:
        """The check of the allocations in Placement."""
        return AllocationCheck(
            self.database, self.placement, self.nova, self.rules.pace
        )

    def find_orphans(self) -> AuditReport:
        """Return all findings, and the checks that could not be made."""
        findings: list[AuditFinding] = []
        failed_checks: set[str] = set()
        # Before the copy: it has the allocation of each ARQ that changed earlier.
        before = self.database.read(clock.read_time_before, self.rules.grace)
        if self.rules.require_allocation:
            try:
                self.allocations.refresh()
            except CyborgError as error:
                failed_checks.add(f'Allocations cannot be determined: {error.text}')
        checks_allocations = self.rules.require_allocation and not failed_checks
        for page in self._read_pages(audit.list_arqs_with_device, before):
            missing = self._find_missing_instances(page, failed_checks)
            findings += map(
                _report_gone, (s for s in page if s.instance_uuid in missing)
            )
            if checks_allocations:
                existing = [s for s in page if s.instance_uuid not in missing]
                findings += self._check_allocations(existing)
        for page in self._read_pages(audit.list_abandoned_arqs, before):
            findings += map(_report_abandoned, page)
        lost_binds = self.database.read(audit.list_lost_binds, before)
        findings += map(_report_lost_bind, lost_binds)
        unreleased = self.database.read(audit.list_unreleased_handles, before)
        findings += map(_report_unreleased, unreleased)
        return AuditReport(tuple(findings), tuple(sorted(failed_checks)))

    def delete_former_servers(self) -> None:
        """Delete the records of former servers that Nova has deleted.

        A former server may be unshelved or evacuated while it exists. Without a Nova
        there is no such server, and all records are deleted.
        """
        before = self.database.read(clock.read_time_before, self.rules.grace)
        last = 0
        while page := self.database.read(
            former_servers.list_former_servers, before, last, _PAGE_SIZE
        ):
            last = max(page)
            try:
                missing = self.nova.find_missing_instances(set(page.values()))
            except CyborgError as error:
                LOG.warning(
                    'Records of %d former servers not checked: %s',
                    len(page),
                    error.text,
                )
                return
            ids = [
                row_id
                for row_id, instance in page.items()
                if missing is None or instance in missing
            ]
            self.database.write(former_servers.delete_former_servers, ids)

    def apply_remedy(self, finding: AuditFinding, request_id: str | None) -> bool:
        """Apply the remedy of a finding.

        :returns: False if the ARQ or handle has changed, or if there is no remedy
        """
        suspect, write = finding.suspect, self.database.write
        if finding.remedy is Remedy.DELETE:
            return write(audit.delete_arq, suspect, request_id)
        if finding.remedy is Remedy.END_BIND:
            return write(audit.fail_bind, suspect, request_id)
        if finding.remedy is Remedy.RELEASE and finding.handle_uuid is not None:
            return write(audit.release_handle, suspect, finding.handle_uuid, request_id)
        return False

    def _read_pages(
        self, read: Callable[..., tuple[Suspect, ...]], before: datetime
    ) -> Iterator[Sequence[Suspect]]:
        """Yield pages of ARQs: a large cloud has many, and nearly all are in order."""
        last = 0
        while page := self.database.read(read, before, last, _PAGE_SIZE):
            yield page
            last = page[-1].id

    def _find_missing_instances(
        self, page: Sequence[Suspect], failed_checks: set[str]
    ) -> frozenset[str]:
        instances = {suspect.instance_uuid or '' for suspect in page}
        try:
            missing = self.nova.find_missing_instances(instances)
        except CyborgError as error:
            failed_checks.add(f'{_INSTANCES_UNKNOWN}: {error.text}')
            return frozenset()
        if missing is None:
            failed_checks.add(f'{_INSTANCES_UNKNOWN}: [nova] is not configured.')
        return missing or frozenset()

    def _check_allocations(self, page: Sequence[Suspect]) -> Iterator[AuditFinding]:
        """Yield ARQs whose instance lacks the allocation, or has too little of it."""
        suspects = [
            suspect
            for suspect in page
            if suspect.state is not State.BIND_FAILED and suspect.device_rp_uuid
        ]
        providers = {suspect.device_rp_uuid or '' for suspect in suspects}
        amounts = self.database.read(allocations.list_amounts, providers)
        numbers = Counter[tuple[str, str, str]]()
        for suspect in suspects:
            provider, instance = (
                suspect.device_rp_uuid or '',
                suspect.instance_uuid or '',
            )
            consumers = amounts.get(provider, {})
            if instance not in consumers:
                yield self._report_unallocated(suspect)
                continue
            name = suspect.resource_class
            numbers[provider, instance, name] += 1
            allocated = consumers[instance].get(name, 0)
            if name and numbers[provider, instance, name] > allocated:
                yield _report_excess(suspect, allocated)

    def _report_unallocated(self, suspect: Suspect) -> AuditFinding:
        """Propose the deletion only if the instance is on no host.

        An instance on a host may be using the device.
        """
        try:
            is_placed = self.nova.is_placed(suspect.instance_uuid or '')
        except CyborgError:
            is_placed = None
        reason = (
            f'Instance {suspect.instance_uuid} has no allocation on resource provider '
            f'{suspect.device_rp_uuid}'
        )
        if is_placed is False:
            reason = f'{reason}, and is on no host.'
            return AuditFinding(
                AuditProblem.NO_ALLOCATION, suspect, reason, Remedy.DELETE
            )
        reason = f'{reason}. It may be running: heal its allocations, or delete it.'
        return AuditFinding(AuditProblem.NO_ALLOCATION, suspect, reason)


def _report_gone(suspect: Suspect) -> AuditFinding:
    reason = f'Instance {suspect.instance_uuid} does not exist in Nova.'
    return AuditFinding(AuditProblem.SERVER_GONE, suspect, reason, Remedy.DELETE)


def _report_excess(suspect: Suspect, allocated: int) -> AuditFinding:
    reason = (
        f'Instance {suspect.instance_uuid} has more units than allocated: Placement '
        f'has {allocated} of {suspect.resource_class} on resource provider '
        f'{suspect.device_rp_uuid}. Heal its allocations, or delete it.'
    )
    return AuditFinding(AuditProblem.MORE_THAN_ALLOCATED, suspect, reason)


def _report_abandoned(suspect: Suspect) -> AuditFinding:
    reason = f'The ARQ is in state {suspect.state} and has not changed since.'
    return AuditFinding(AuditProblem.NEVER_BOUND, suspect, reason, Remedy.DELETE)


def _report_lost_bind(suspect: Suspect) -> AuditFinding:
    reason = 'The ARQ is in state BindStarted, and no bind job exists for it.'
    return AuditFinding(AuditProblem.BIND_LOST, suspect, reason, Remedy.END_BIND)


def _report_unreleased(handle: audit.UnreleasedHandle) -> AuditFinding:
    problem, cause = AuditProblem.NOT_RELEASED, 'no release job exists for it.'
    if handle.failed_job is not None:
        problem = AuditProblem.RELEASE_FAILED
        cause = f'release job {handle.failed_job} has failed.'
    return AuditFinding(
        problem,
        handle.suspect,
        f'Attach handle {handle.handle_uuid} is not released: {cause}',
        Remedy.RELEASE,
        handle_uuid=handle.handle_uuid,
        job_uuid=handle.failed_job,
    )


# --- the audit job, and the loop that schedules it ---


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

    def run(self, job: Job) -> None:
        """Run one audit."""
        write = self.database.write
        write(operations.record_step, job.operations, 'checking-arqs')
        report = self.audit.find_orphans()
        _log_report(report)
        for finding in report.findings:
            self.count_finding(finding.problem)
        is_requested = queue.read_payload(AuditPayload, job.payload).applies
        is_trusted = self.database.read(find_quarantine) is None
        reaps = self.reap or is_requested
        for finding in report.findings if reaps and is_trusted else ():
            if self.audit.apply_remedy(finding, job.request_id):
                LOG.warning(
                    'Audit: remedy applied to ARQ %s: %s',
                    finding.suspect.uuid,
                    finding.remedy,
                )
        self.audit.delete_former_servers()
        write(operations.record_step, job.operations, 'checking-placement', 50)
        unowned, failed_checks = self._check_placement()
        if is_trusted and not failed_checks:
            self._free_units(unowned if is_requested else ())
        if job.operations:
            checks = (*report.failed_checks, *failed_checks)
            result = {
                'findings': _describe(report, unowned)[:_MAX_FINDINGS],
                'failed_checks': checks,
            }
            write(operations.record_result, job.operations, result)
        write(queue.finish_job, job)

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

    def _free_units(self, leaks: Sequence[UnownedAllocation]) -> None:
        """Delete leaked allocations, and free held units that nobody needs then."""
        try:
            for item in leaks:
                if not item.has_server:
                    self.audit.allocations.clear(item)
            unneeded = self.database.read(occupied_handles.list_unneeded)
            for host, uuids in unneeded.items():
                self.database.write(occupied_handles.vacate, host, uuids)
                LOG.info(
                    'Host %s: no allocation needs the held units %s any more',
                    host,
                    ', '.join(uuids),
                )
        except CyborgError as error:
            LOG.warning('Units are not freed: %s', error.text)

    def expire(self, job: Job, reason: str) -> None:
        """Finish the job: the next audit does the same work."""
        self.database.write(queue.finish_job, job, reason)


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


def build_audit_job(request_id: str | None = None, *, applies: bool = False) -> NewJob:
    """Return the audit job of the deployment.

    :param request_id: of the API request; None: no request has caused the job
    :param applies: apply the remedies, even if the configuration does not
    """
    payload = AuditPayload(applies)
    return queue.build_job(payload, key=_KEY, request_id=request_id, widens=applies)


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
