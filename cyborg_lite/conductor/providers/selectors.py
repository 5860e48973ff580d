# SPDX-License-Identifier: Apache-2.0
"""Evaluation of all deployables after a change of the selectors of device profiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.jobs.runner import EndlessHandler
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.profiles import selectors
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.profiles.selector_keys import name_bitstream_attribute

LOG = log.getLogger(__name__)

_HOSTS: Final = 500  # whose jobs one transaction writes


@dataclass(frozen=True, slots=True)
class SelectorsHandler(EndlessHandler):
    """Runs the job that follows a change of selectors.

    The job evaluates all deployables in one pass and schedules Placement syncs of the
    hosts whose providers must get or lose a trait. The syncs set and remove the traits.
    A report that is stored meanwhile has a sync of its own.
    """

    placement: Placement
    catalog: BitstreamCatalog

    def run(self, job: Job) -> None:
        """Evaluate all deployables.

        :raises ServiceUnavailable: Glance, Placement or the database does not answer
        """
        groups = self.database.read(selectors.list_compiled_groups)
        has_bitstreams = any(map(name_bitstream_attribute, groups))
        loadable: Mapping[str, Sequence[str]] = {}
        if has_bitstreams:
            regions = self.database.read(programming.list_region_properties)
            loadable = self.catalog.list_loadable(groups, regions)
        self.database.write(selectors.store_loadable, loadable)
        active = self.database.read(selectors.list_selectors)
        # Placement refuses to search for a trait that does not exist.
        self.placement.create_custom_names((), [item.trait for item in active])
        hosts = self.database.read(selectors.list_outdated_hosts, active)
        for start in range(0, len(hosts), _HOSTS):
            batch = hosts[start : start + _HOSTS]
            self.database.write(selectors.schedule_syncs, batch)
        LOG.info('%d selectors evaluated; %d hosts change', len(active), len(hosts))
        self.database.write(selectors.finish_evaluation, job, repeat=has_bitstreams)
