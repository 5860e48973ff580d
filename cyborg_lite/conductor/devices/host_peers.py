# SPDX-License-Identifier: Apache-2.0
"""Peers of a change of the devices of a host."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HostPeers:
    """The peers that a change of the devices of a host needs."""

    agents: Agents
    placement: Placement
    sync_placement: Callable[[str], object]  # updates the providers of a host

    def describe_allocations(self, providers: Iterable[str]) -> str:
        """Return which instances are scheduled to a provider; empty: none is."""
        for provider in providers:
            consumers = sorted(self.placement.list_consumers(provider))
            if consumers:
                return f'Placement has allocations of it: {", ".join(consumers[:10])}.'
        return ''

    def try_sync(self, hostname: str) -> None:
        """Update the providers after a change; if it fails, a job does it later."""
        try:
            self.sync_placement(hostname)
        except CyborgError as error:
            LOG.warning(
                'Placement sync of host %s after a change of its devices postponed to '
                'a job: %s',
                hostname,
                error.text,
            )
