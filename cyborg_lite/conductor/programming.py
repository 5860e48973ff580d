# SPDX-License-Identifier: Apache-2.0
"""Loading by an operator's hand: a job that he waits for, or that he follows."""

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.jobs import JobRunner
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.db import deployables, program_jobs, programming
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    CyborgError,
    DeployableNotFound,
    HostAway,
    ProgrammingTimedOut,
    ServiceUnavailable,
)
from cyborg_lite.model.bitstream_list import ListedBitstream
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.jobs import Job, Kind, NewJob
from cyborg_lite.model.program_jobs import ProgramJob, ProgramStep
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext

LOG = log.getLogger(__name__)

_PATIENCE: Final = 50.0  # seconds; clients of the API wait a minute
_DEADLINE: Final = 600_000  # milliseconds


class Programming:
    """Loading by an operator's hand: he waits, but the work does not need him."""

    def __init__(
        self,
        database: Database,
        loader: Loader,
        runner: JobRunner,
        waiting: 'Waiting',
    ) -> None:
        self._database = database
        self._loader = loader
        self._runner = runner
        self._waiting = waiting

    def program(
        self, context: RequestContext, uuid: str, image_id: str
    ) -> DeployableRecord:
        """Load an image into a deployable that nobody holds.

        :raises DeployableNotFound: no such deployable
        :raises DeployableInUse: it is bound, or being programmed
        :raises DriverError: the image does not fit, or the host could not load it
        :raises ProgrammingTimedOut: it goes on, but the caller should not wait longer
        """
        job = self._accept(context, uuid, image_id)
        outcome = self._waiting.for_job(job.uuid)
        self._runner.run(job)
        try:
            outcome.result(_PATIENCE)
        except NotYet:
            raise ProgrammingTimedOut(uuid=uuid) from None
        finally:
            self._waiting.no_more(job.uuid)
        (record,) = self._database.read(
            deployables.listed, Query(filters={'uuid': (uuid,)})
        )
        return record

    def start(self, context: RequestContext, uuid: str, image_id: str) -> ProgramJob:
        """As ``program``, for one who follows it and does not wait.

        :raises DeployableNotFound: no such deployable
        :raises DeployableInUse: it is bound, or being programmed
        :raises DriverError: the image does not fit
        """
        job = self._accept(context, uuid, image_id)
        accepted = self._database.read(program_jobs.shown, job.uuid, None)
        self._runner.run(job)
        return accepted

    def show(self, context: RequestContext, uuid: str) -> ProgramJob:
        """:raises JobNotFound: there is none, or it is another project's"""
        whose = None if 'admin' in context.roles else context.project_id or ''
        return self._database.read(program_jobs.shown, uuid, whose)

    def bitstreams(
        self, filters: Mapping[str, str], deployable: str
    ) -> tuple[ListedBitstream, ...]:
        """All there are, what can be loaded first and best first.

        :param deployable: where to; empty: they are judged by themselves
        :raises DeployableNotFound: no such deployable
        :raises ServiceUnavailable: Glance does not answer
        """
        region = None
        if deployable:
            region = self._database.read(programming.region, deployable)
        return self._loader.listed(filters, region)

    def _accept(self, context: RequestContext, uuid: str, image_id: str) -> Job:
        region = self._database.read(programming.region, uuid)
        shell = self._loader.image_for(region, image_id).is_shell
        new = NewJob(
            Kind.PROGRAM,
            {'deployable': uuid, 'image': image_id, 'shell': shell},
            limit_ms=_DEADLINE,
            request_id=context.request_id,
        )
        owner, project = self._runner.owner, context.project_id
        return self._database.write(programming.begin, region, new, owner, project)


class Waiting:
    """Callers of this process that wait for jobs of this process."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._outcomes: dict[str, Future[None]] = {}

    def for_job(self, uuid: str) -> Future[None]:
        with self._guard:
            return self._outcomes.setdefault(uuid, Future())

    def no_more(self, uuid: str) -> None:
        with self._guard:
            self._outcomes.pop(uuid, None)

    def tell(self, uuid: str, error: CyborgError | None) -> None:
        """It has ended, well if ``error`` is None. Often nobody waits any more."""
        with self._guard:
            outcome = self._outcomes.get(uuid)
        if outcome is None or outcome.done():
            return
        if error is None:
            outcome.set_result(None)
        else:
            outcome.set_exception(error)


class ProgramHandler:
    """The job of loading one image into one deployable; safe to run again."""

    def __init__(self, database: Database, loader: Loader, waiting: Waiting) -> None:
        self._database = database
        self._loader = loader
        self._waiting = waiting

    def run(self, job: Job) -> Job | None:
        try:
            region = self._database.read(programming.region, job.payload['deployable'])
        except DeployableNotFound as error:
            self._database.write(programming.end_without, job, error.text)
            self._waiting.tell(job.uuid, error)
            return None
        failure: CyborgError | None = None
        try:
            self._load(job, region)
        except (HostAway, ServiceUnavailable) as error:
            # It is tried again, and whoever waits hears that it takes long.
            away = isinstance(error, HostAway)
            reason = 'Its host does not answer yet.' if away else error.text
            self._reach(job, ProgramStep.ACCEPTED, reason)
            raise
        except CyborgError as error:
            LOG.error('Programming of %s failed: %s', region.name, error.text)
            failure = error
        self._end(job, region, failure)
        return None

    def _load(self, job: Job, region: programming.Region) -> None:
        self._reach(job, ProgramStep.CHECKING)
        bitstream = self._loader.image_for(region, job.payload['image'])
        self._reach(job, ProgramStep.LOADING)
        self._loader.load(region, bitstream, (), job.request_id)
        self._loader.show_if_possible(region.hostname)

    def _reach(self, job: Job, step: ProgramStep, reason: str = '') -> None:
        self._database.write(program_jobs.reach, job.uuid, step, reason)

    def expire(self, job: Job, reason: str) -> Job | None:
        LOG.error('Programming of %s: %s', job.payload['deployable'], reason)
        try:
            region = self._database.read(programming.region, job.payload['deployable'])
        except DeployableNotFound as error:
            self._database.write(programming.end_without, job, error.text)
            return None
        # Its host may have begun: what is in there, nobody knows.
        self._database.write(programming.unusable, region, f'Programming it: {reason}')
        self._end(job, region, ProgrammingTimedOut(uuid=region.uuid))
        return None

    def _end(
        self, job: Job, region: programming.Region, failure: CyborgError | None
    ) -> None:
        text = None if failure is None else failure.text
        self._database.write(programming.end, region, job, text)
        self._waiting.tell(job.uuid, failure)
