# SPDX-License-Identifier: Apache-2.0
"""The audit that comes round by itself: one at a time, however many conductors run."""

import logging
import random
import threading
from collections.abc import Callable
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.audit import Audit
from cyborg_lite.db import jobs, services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.audit import Finding, Report
from cyborg_lite.model.jobs import Job, Kind, NewJob
from cyborg_lite.model.queries import Query

LOG = log.getLogger(__name__)

_KEY: Final = 'orphans'  # one such job at a time


class AuditHandler:
    """Runs the job: tells what it found, and ends it if it may."""

    def __init__(self, database: Database, audit: Audit, reap: bool) -> None:
        self._database = database
        self._audit = audit
        self._reap = reap

    def run(self, job: Job) -> Job | None:
        report = self._audit.find()
        self._tell(report)
        for finding in report.findings if self._reap else ():
            if self._audit.remedy(finding, job.request_id):
                about = finding.suspect.uuid
                LOG.warning('Accelerator request %s: %s.', about, finding.remedy)
        self._audit.forget_servers()
        self._database.write(jobs.finish, job)
        return None

    def expire(self, job: Job, reason: str) -> Job | None:
        """The next round does the same."""
        self._database.write(jobs.finish, job)
        return None

    def _tell(self, report: Report) -> None:
        for doubt in report.doubts:
            LOG.warning('Audit: %s', doubt)
        for finding in report.findings:
            LOG.warning('Audit, %s: %s', finding.trouble, _sentence(finding))
        level = logging.INFO if report.findings else logging.DEBUG
        LOG.log(level, 'Audit: %d findings.', len(report.findings))


def _sentence(finding: Finding) -> str:
    return f'accelerator request {finding.suspect.uuid}: {finding.reason}'


class AuditRounds:
    """The loop that calls for the job, the seldomer the more conductors do so."""

    def __init__(
        self,
        database: Database,
        wake: Callable[[], None],
        interval: float,
        stopping: threading.Event,
    ) -> None:
        """:param wake: whoever runs jobs: there is a new one
        :param interval: seconds from one audit to the next; 0: there is none
        """
        self._database = database
        self._wake = wake
        self._interval = interval
        self._stopping = stopping

    def run(self) -> None:
        """Until it is told to stop."""
        if not self._interval:
            return
        while not self._stopping.wait(self.pause()):
            try:
                self._database.write(jobs.add, NewJob(Kind.AUDIT, key=_KEY))
                self._wake()
            except CyborgError as error:
                LOG.error('Cannot call for an audit: %s', error.text)

    def pause(self) -> float:
        """Seconds; with jitter, so that conductors do not ask all at once."""
        filters = {'binary': (services.CONDUCTOR,), 'state': ('up',)}
        try:
            others = self._database.read(services.listed, Query(filters=filters))
        except CyborgError as error:
            LOG.error('Cannot count the conductors: %s', error.text)
            others = ()
        return self._interval * max(1, len(others)) * random.uniform(0.8, 1.2)
