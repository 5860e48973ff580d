# SPDX-License-Identifier: Apache-2.0
"""Has bitstreams loaded: those that a bind or an operator names, and what was before.

All end in the same load on the host, which is safe to repeat. What the host finds
afterwards goes into the database at once, so that Placement follows before a request
that asked for it is Bound.
"""

from collections.abc import Callable, Mapping, Sequence

from oslo_log import log

from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.db import clock, loaded_regions, programming
from cyborg_lite.db.engine import Database
from cyborg_lite.db.loaded_regions import Earlier
from cyborg_lite.db.programming import Region
from cyborg_lite.exceptions import (
    BitstreamRefused,
    CyborgError,
    DeployableInUse,
    DeviceBusy,
    DriverError,
    LoadingFailed,
    RemoteError,
)
from cyborg_lite.model import bitstream_choice, report_rules
from cyborg_lite.model.bitstream_choice import Target, Wanted, is_loaded
from cyborg_lite.model.bitstream_list import ListedBitstream
from cyborg_lite.model.bitstreams import Bitstream, LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.context import of_request

LOG = log.getLogger(__name__)


class Loader:
    """Loads a bitstream into a region and writes down what has become of it."""

    def __init__(
        self,
        database: Database,
        agents: AgentAPI,
        library: Library,
        place: Callable[[str], object] = lambda hostname: None,
    ) -> None:
        """:param place: brings Placement in line with what a host has now"""
        self._place = place
        self._database = database
        self._agents = agents
        self._library = library

    def load_for(self, arqs: Sequence[str], request_id: str | None) -> bool:
        """What the requests of a bind ask for, once their handles are claimed.

        False: they take what is there.

        :raises DriverError: it is not to be had, does not fit, or cannot be loaded
        :raises DeployableInUse: somebody else would lose what he has
        :raises HostAway: a host does not answer; safe to try again
        :raises ServiceUnavailable: likewise Glance, or Placement
        """
        asked = [
            (holding.region, wanted)
            for holding in self._database.read(programming.holdings, arqs)
            if (wanted := bitstream_choice.wanted(holding.group)) is not None
        ]
        chosen = [(region, self._chosen(wanted, region)) for region, wanted in asked]
        images: dict[int, Bitstream] = {}
        for region, bitstream in chosen:
            earlier = images.setdefault(region.deployable_id, bitstream)
            if earlier.image_id != bitstream.image_id:
                reason = f'{region.name} cannot hold two bitstreams at once.'
                raise DriverError(reason=reason)
        for region, bitstream in chosen:
            if not _holds(region, bitstream):
                shown = _target(region).function_id
                number = region.deployable_id
                self._database.write(loaded_regions.intend, number, shown)
                self.load(region, bitstream, arqs, request_id)
        for hostname in sorted({region.hostname for region, _ in chosen}):
            self.show(hostname)
        return bool(chosen)

    def show(self, hostname: str) -> None:
        """Have Placement show what is there now, before anybody is told of it.

        :raises CyborgError: it cannot now; a job is written that does
        """
        try:
            self._place(hostname)
        except RemoteError as error:
            # All it takes it has; what it refuses may be another device's.
            LOG.warning('Placement, host %s: %s', hostname, error.text)

    def show_if_possible(self, hostname: str) -> None:
        """As ``show``; what cannot be shown now the job shows later."""
        try:
            self.show(hostname)
        except CyborgError as error:
            LOG.warning('Placement is told of host %s later: %s', hostname, error.text)

    def _chosen(self, wanted: Wanted, region: Region) -> Bitstream:
        found = self._library.find(wanted, _target(region))
        if found.is_shell:
            reason = 'It is a shell; program the deployable with it by hand.'
            raise BitstreamRefused(image=found.image_id, reason=reason)
        return found

    def image_for(self, region: Region, image_id: str) -> Bitstream:
        """:raises DriverError: as ``load_for``"""
        return self._library.find(Wanted(image_id=image_id), _target(region))

    def listed(
        self, filters: Mapping[str, str], region: Region | None
    ) -> tuple[ListedBitstream, ...]:
        """As ``Library.listed``; None: by themselves, without a region."""
        where = None if region is None else _target(region)
        return self._library.listed(filters, where)

    def load(
        self,
        region: Region,
        bitstream: Bitstream,
        own: Sequence[str],
        request_id: str | None,
    ) -> None:
        """:raises CyborgError: as ``load_for``"""
        if _holds(region, bitstream):
            LOG.info('%s holds image %s.', region.name, bitstream.image_id)
            return
        self._load(region, bitstream, own, request_id)

    def _load(
        self,
        region: Region,
        bitstream: Bitstream,
        own: Sequence[str],
        request_id: str | None,
    ) -> None:
        shell = bitstream.is_shell
        self._database.read(programming.check_unused, region, own, whole_card=shell)
        # Its host carries out no order that is older than one it has carried out.
        moment = self._database.read(clock.moment)
        order = LoadOrder(region.address, region.part, bitstream, moment)
        try:
            device = self._agents.program(
                of_request(request_id), region.hostname, order
            )
        except LoadingFailed as error:
            self._close(region, error.text)
            raise
        report_rules.check(HostReport(region.hostname, '', (device,)))
        self._database.write(programming.loaded, region, bitstream, device)
        LOG.info('%s holds image %s now.', region.name, bitstream.image_id)

    def restore(self, handle: HeldHandle, request_id: str | None) -> None:
        """Undo what the bind of a handle has loaded, once its guest has gone.

        Where that cannot be done the region is closed, with the reason.

        :raises DeviceBusy: the guest still has it; to be tried again
        :raises HostAway: its host does not answer; likewise
        :raises ServiceUnavailable: Glance does not; likewise
        """
        region = self._database.read(programming.region_of_handle, handle.uuid)
        if region is None:
            return
        before = self._database.read(loaded_regions.earlier, region.deployable_id)
        if before is None:
            return
        try:
            self._bring_back(region, before, handle.arq_uuid, request_id)
        except DeviceBusy:
            raise
        except (DriverError, DeployableInUse) as error:
            reason = f'What was there before cannot be loaded again: {error.text}'
            self._close(region, reason)
        self._database.write(loaded_regions.undone, region.deployable_id)

    def _bring_back(
        self, region: Region, before: Earlier, arq: str, request_id: str | None
    ) -> None:
        wanted = self._library.default_for(_target(region)) or before.bitstream
        if wanted is None:
            wanted = self._known(region, before.function_id)
        if wanted is None:
            return
        wrong = bitstream_choice.misfits(wanted, _target(region))
        if wrong:
            raise BitstreamRefused(image=wanted.image_id, reason=' '.join(wrong))
        # Whatever is written of it here: a report of before the load may have come
        # after it, or the conductor that had it loaded may have died before it could
        # write that down. The host looks at the hardware, and loads nothing twice.
        self._load(region, wanted, (arq,), request_id)

    def _known(self, region: Region, function_id: str) -> Bitstream | None:
        """An image of what nobody had loaded by our doing: the factory's, mostly."""
        found = self._library.of_function(function_id, _target(region))
        if found is None:
            LOG.warning(
                'Nothing is known that brings function %s back into %s: it stays as '
                'its last user had it.',
                function_id or 'none',
                region.name,
            )
        return found

    def _close(self, region: Region, reason: str) -> None:
        LOG.error('%s is unusable: %s', region.name, reason)
        self._database.write(programming.unusable, region, reason)
        self.show_if_possible(region.hostname)


def _target(region: Region) -> Target:
    return bitstream_choice.target(region.attributes, region.image_id)


def _holds(region: Region, bitstream: Bitstream) -> bool:
    return not region.unusable and is_loaded(bitstream, _target(region))
