# SPDX-License-Identifier: Apache-2.0
"""Has bitstreams loaded: for a bind that names one, and for an operator who does.

Both end in the same load on the host, which is safe to repeat. What the host finds
afterwards goes into the database at once, so that Placement follows before a request
that asked for it is Bound.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.jobs import JobRunner
from cyborg_lite.db import deployables, jobs, programming
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    CyborgError,
    DeployableNotFound,
    DriverError,
    HostAway,
    LoadingFailed,
    ProgrammingTimedOut,
    ServiceUnavailable,
)
from cyborg_lite.model import bitstream_choice, report_rules
from cyborg_lite.model.bitstream_choice import Wanted, is_loaded, target
from cyborg_lite.model.bitstreams import Bitstream, LoadOrder
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.jobs import Job, Kind, NewJob
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.context import RequestContext, of_request

LOG = log.getLogger(__name__)

_PATIENCE: Final = 50.0  # seconds; clients of the API wait a minute
_DEADLINE: Final = 600_000  # milliseconds


class Loader:
    """Loads a bitstream into a region and writes down what has become of it."""

    def __init__(self, database: Database, agents: AgentAPI, library: Library) -> None:
        self._database = database
        self._agents = agents
        self._library = library

    def load_for(self, job: Job, arqs: Sequence[str]) -> None:
        """What the requests of a bind ask for, once their handles are claimed.

        :raises DriverError: it is not to be had, does not fit, or cannot be loaded
        :raises DeployableInUse: somebody else would lose what he has
        :raises HostAway: a host does not answer; safe to try again
        :raises ServiceUnavailable: likewise Glance
        """
        asked = [
            (holding, wanted)
            for holding in self._database.read(programming.holdings, arqs)
            if (wanted := bitstream_choice.wanted(holding.group)) is not None
        ]
        chosen = [
            (holding.region, self._find(wanted, holding.region))
            for holding, wanted in asked
        ]
        images: dict[int, Bitstream] = {}
        for region, bitstream in chosen:
            earlier = images.setdefault(region.deployable_id, bitstream)
            if earlier.image_id != bitstream.image_id:
                reason = f'{region.name} cannot hold two bitstreams at once.'
                raise DriverError(reason=reason)
        for region, bitstream in chosen:
            self.load(region, bitstream, arqs, job.request_id)

    def _find(self, wanted: Wanted, region: programming.Region) -> Bitstream:
        where = target(region.attributes, region.image_id)
        return self._library.find(wanted, where)

    def image_for(self, region: programming.Region, image_id: str) -> Bitstream:
        """:raises DriverError: as ``load_for``"""
        return self._find(Wanted(image_id=image_id), region)

    def load(
        self,
        region: programming.Region,
        bitstream: Bitstream,
        own: Sequence[str],
        request_id: str | None,
    ) -> None:
        """:raises CyborgError: as ``load_for``"""
        if is_loaded(bitstream, target(region.attributes, region.image_id)):
            LOG.info('%s holds image %s.', region.name, bitstream.image_id)
            return
        shell = bitstream.is_shell
        self._database.read(programming.check_unused, region, own, whole_card=shell)
        order = LoadOrder(region.address, region.part, bitstream)
        try:
            device = self._agents.program(
                of_request(request_id), region.hostname, order
            )
        except LoadingFailed as error:
            LOG.error('%s is unusable: %s', region.name, error.text)
            self._database.write(programming.unusable, region)
            raise
        report_rules.check(HostReport(region.hostname, '', (device,)))
        self._database.write(programming.loaded, region, bitstream, device)
        LOG.info('%s holds image %s now.', region.name, bitstream.image_id)


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
        region = self._database.read(programming.region, uuid)
        shell = self._loader.image_for(region, image_id).is_shell
        new = NewJob(
            Kind.PROGRAM,
            {'deployable': uuid, 'image': image_id, 'shell': shell},
            limit_ms=_DEADLINE,
            request_id=context.request_id,
        )
        owner = self._runner.owner
        job = self._database.write(
            programming.begin, region, new, owner, whole_card=shell
        )
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
            self._database.write(jobs.finish, job)
            self._waiting.tell(job.uuid, error)
            return None
        failure: CyborgError | None = None
        try:
            bitstream = self._loader.image_for(region, job.payload['image'])
            self._loader.load(region, bitstream, (), job.request_id)
        except (HostAway, ServiceUnavailable):
            raise  # it is tried again, and whoever waits hears that it takes long
        except CyborgError as error:
            LOG.error('Programming of %s failed: %s', region.name, error.text)
            failure = error
        self._end(job, region)
        self._waiting.tell(job.uuid, failure)
        return None

    def expire(self, job: Job, reason: str) -> Job | None:
        LOG.error('Programming of %s: %s', job.payload['deployable'], reason)
        try:
            region = self._database.read(programming.region, job.payload['deployable'])
        except DeployableNotFound:
            self._database.write(jobs.finish, job)
            return None
        # Its host may have begun: what is in there, nobody knows.
        self._database.write(programming.unusable, region)
        self._end(job, region)
        self._waiting.tell(job.uuid, ProgrammingTimedOut(uuid=region.uuid))
        return None

    def _end(self, job: Job, region: programming.Region) -> None:
        shell = bool(job.payload['shell'])
        self._database.write(programming.end, region, job, whole_card=shell)
