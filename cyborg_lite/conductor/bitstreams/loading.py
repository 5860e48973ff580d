# SPDX-License-Identifier: Apache-2.0
"""Loading of bitstreams into regions, for binds, for operators and after releases.

All loads use the same RPC, which the agent may receive any number of times. Its result
is stored at once, so that Placement is up to date before an ARQ becomes Bound.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.conductor.bitstreams.bitstreams import NO_BITSTREAMS, BitstreamCatalog
from cyborg_lite.db.arqs import release
from cyborg_lite.db.bitstreams import loaded_regions, programming
from cyborg_lite.db.bitstreams.loaded_regions import PreviousLoad
from cyborg_lite.db.bitstreams.programming import StoredRegion
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.bitstreams import BitstreamRefused, LoadingFailed
from cyborg_lite.errors.daemons import RemoteError
from cyborg_lite.errors.devices import DeployableInUse
from cyborg_lite.errors.drivers import DeviceBusy, DriverError
from cyborg_lite.model.bitstreams import choice
from cyborg_lite.model.bitstreams.bitstreams import Bitstream, LoadOrder
from cyborg_lite.model.bitstreams.choice import (
    BitstreamQuery,
    RegionProperties,
    is_loaded,
)
from cyborg_lite.model.bitstreams.listing import ListedBitstream
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory import report_rules
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.profiles.device_profiles import Group
from cyborg_lite.rpc.context import request_context
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BitstreamLoader:
    """Loads bitstreams through the agents and stores the results."""

    database: Database
    agents: Agents
    # By default only bitstreams which the agent still stores can be loaded.
    catalog: BitstreamCatalog = NO_BITSTREAMS
    # Updates the providers of a host in Placement.
    sync_placement: Callable[[str], object] = lambda hostname: None

    def load_for_arqs(
        self, arq_uuids: Sequence[str], generation: int, request_id: str | None
    ) -> bool:
        """Load the bitstreams that the ARQs of a bind request.

        :param arq_uuids: ARQs that have claimed their handles
        :param generation: of the bind; 0: not compared
        :returns: False if no ARQ requests a bitstream
        :raises DriverError: a bitstream does not exist, does not fit or failed to load
        :raises DeployableInUse: loading would replace the bitstream of other ARQs
        :raises HostAway: an agent does not answer; the call may be repeated
        :raises ServiceUnavailable: Glance or Placement does not answer; the call may be
            repeated
        """
        loads = self._choose_bitstreams(arq_uuids, generation)
        for region, bitstream in loads:
            if not _has_loaded(region, bitstream):
                self.database.write(
                    loaded_regions.record_bind_load,
                    region.deployable_id,
                    _read_properties(region).function_id,
                )
                self.load(region, bitstream, arq_uuids, request_id)
        for hostname in sorted({region.hostname for region, _ in loads}):
            self._update_placement(hostname)
        return bool(loads)

    def _choose_bitstreams(
        self, arq_uuids: Sequence[str], generation: int
    ) -> list[tuple[StoredRegion, Bitstream]]:
        """Return the regions of the ARQs that request a bitstream, with it."""
        queries = [
            (target.region, query)
            for target in self.database.read(
                programming.list_regions_of_arqs, arq_uuids, generation
            )
            if (query := choice.parse_query(Group.parse(target.group))) is not None
        ]
        loads = [(region, self._choose(query, region)) for region, query in queries]
        by_deployable: dict[int, Bitstream] = {}
        for region, bitstream in loads:
            first = by_deployable.setdefault(region.deployable_id, bitstream)
            if first.image_id != bitstream.image_id:
                reason = (
                    f'Deployable {region.name} cannot hold two bitstreams: '
                    f'{first.image_id} and {bitstream.image_id}.'
                )
                raise DriverError(reason=reason)
        return loads

    def _choose(self, query: BitstreamQuery, region: StoredRegion) -> Bitstream:
        bitstream = self.catalog.find(query, _read_properties(region))
        if bitstream.is_shell:
            reason = 'It is a shell. An operator must program it into the deployable.'
            raise BitstreamRefused(image=bitstream.image_id, reason=reason)
        return bitstream

    def _update_placement(self, hostname: str) -> None:
        """Update the providers of a host, before the ARQs become Bound."""
        try:
            self.sync_placement(hostname)
        except RemoteError as error:
            # Placement has accepted the other providers. The one that it rejects may
            # be of another device, so the bind continues.
            LOG.warning(
                'Placement rejected a provider of host %s after a load: %s',
                hostname,
                error.text,
            )

    def try_update_placement(self, hostname: str) -> None:
        """Update the providers of a host, or leave it to the Placement sync job."""
        try:
            self._update_placement(hostname)
        except CyborgError as error:
            LOG.warning(
                'Placement sync of host %s after a load postponed to a job: %s',
                hostname,
                error.text,
            )

    def find_image(self, region: StoredRegion, image_id: str) -> Bitstream:
        """Return the bitstream of an image.

        :raises DriverError: the image does not exist, or does not fit the region
        :raises ServiceUnavailable: Glance does not answer
        """
        query = BitstreamQuery(image_id=image_id)
        return self.catalog.find(query, _read_properties(region))

    def list_bitstreams(
        self, filters: Mapping[str, str], region: StoredRegion | None
    ) -> tuple[ListedBitstream, ...]:
        """Return bitstreams; see ``BitstreamCatalog.list``."""
        properties = None if region is None else _read_properties(region)
        return self.catalog.list(filters, properties)

    def load(
        self,
        region: StoredRegion,
        bitstream: Bitstream,
        arq_uuids: Sequence[str],
        request_id: str | None,
    ) -> None:
        """Load a bitstream unless the region holds it already.

        :param arq_uuids: ARQs that may use the region meanwhile
        :raises CyborgError: as ``load_for_arqs``
        """
        if _has_loaded(region, bitstream):
            LOG.info(
                'Deployable %s already holds image %s', region.uuid, bitstream.image_id
            )
            return
        self._load(region, bitstream, arq_uuids, request_id)

    def _load(
        self,
        region: StoredRegion,
        bitstream: Bitstream,
        arq_uuids: Sequence[str],
        request_id: str | None,
    ) -> None:
        self.database.read(
            programming.check_region_unused,
            region,
            arq_uuids,
            whole_card=bitstream.is_shell,
        )
        # The agent ignores an order that is older than the last one it executed.
        moment = self.database.read(clock.read_now_ms)
        order = LoadOrder(region.control_address, region.suffix, bitstream, moment)
        try:
            device = self.agents.program(
                request_context(request_id), region.hostname, order
            )
        except LoadingFailed as error:
            self.database.write(programming.mark_region_unusable, region, error.text)
            self._report_unusable(region, error.text)
            raise
        report_rules.check_report(HostReport(region.hostname, '', (device,)))
        self.database.write(programming.record_load, region, bitstream, device)
        LOG.info(
            'Image %s loaded into deployable %s (%s) on host %s',
            bitstream.image_id,
            region.uuid,
            region.name,
            region.hostname,
        )

    def restore(self, handle: AllocatedHandle, request_id: str | None) -> None:
        """Restore the bitstream that a bind replaced, after the guest has stopped.

        If that is impossible, the region is marked unusable with the reason. If another
        conductor has completed the release meanwhile, nothing is stored.

        :raises DeviceBusy: the guest still uses the device; the call may be repeated
        :raises HostAway: the agent does not answer; the call may be repeated
        :raises ServiceUnavailable: Glance does not answer; the call may be repeated
        """
        region = self.database.read(programming.find_region_of_handle, handle.uuid)
        if region is None:
            return
        previous = self.database.read(
            loaded_regions.find_previous_load, region.deployable_id
        )
        if previous is None:
            return
        trouble = ''
        try:
            self._load_previous(region, previous, handle.arq_uuid, request_id)
        except DeviceBusy:
            raise
        except (DriverError, DeployableInUse) as error:
            trouble = f'The previous bitstream cannot be loaded again: {error.text}'
        is_recorded = self.database.write(
            release.record_restore, handle, region, trouble
        )
        if is_recorded and trouble:
            self._report_unusable(region, trouble)

    def _load_previous(
        self,
        region: StoredRegion,
        previous: PreviousLoad,
        arq_uuid: str,
        request_id: str | None,
    ) -> None:
        properties = _read_properties(region)
        bitstream = self.catalog.find_default(properties) or previous.bitstream
        if bitstream is None:
            bitstream = self._find_original(region, previous.function_id)
        if bitstream is None:
            return
        mismatches = choice.list_mismatches(bitstream, properties)
        if mismatches:
            raise BitstreamRefused(
                image=bitstream.image_id, reason=' '.join(mismatches)
            )
        # `_load` calls the agent even if the stored row names this bitstream already.
        # The row may be wrong: a report from before the load may have arrived after it,
        # or the conductor may have exited before it stored the load. The agent reads
        # the hardware and does not load the same bitstream twice.
        self._load(region, bitstream, (arq_uuid,), request_id)

    def _find_original(
        self, region: StoredRegion, function_id: str
    ) -> Bitstream | None:
        """Return an image of the function that was in the region before any load.

        That is mostly the factory bitstream. Cyborg has no record of its image.
        """
        bitstream = None
        if function_id:
            properties = _read_properties(region)
            bitstream = self.catalog.find_by_function(function_id, properties)
        if bitstream is None:
            LOG.warning(
                'Deployable %s (%s) on host %s still has the bitstream of its last '
                'user: no image in Glance has the previous function %s. Program the '
                'deployable to replace it',
                region.uuid,
                region.name,
                region.hostname,
                function_id or '(unknown)',
            )
        return bitstream

    def _report_unusable(self, region: StoredRegion, reason: str) -> None:
        LOG.error(
            'Deployable %s (%s) on host %s marked unusable: %s',
            region.uuid,
            region.name,
            region.hostname,
            reason,
        )
        self.try_update_placement(region.hostname)


def _read_properties(region: StoredRegion) -> RegionProperties:
    return choice.read_region_properties(region.attributes, region.image_id)


def _has_loaded(region: StoredRegion, bitstream: Bitstream) -> bool:
    return not region.unusable_reason and is_loaded(bitstream, _read_properties(region))
