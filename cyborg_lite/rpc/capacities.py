# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor about the capacity for servers; part of ``ConductorAPI``."""

from cyborg_lite.model.server_capacity import ProfileCapacity
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Caller


class CapacityCalls:
    """Typed calls about the capacity for servers."""

    _caller: Caller

    def count_profile_capacity(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> ProfileCapacity:
        """Return how many further servers with a device profile fit on each host.

        :param hostname: the only host to count; None: all hosts
        :raises DeviceProfileNotFound: the profile does not exist
        """
        answer = self._caller.call(
            context,
            'count_profile_capacity',
            since='1.18',
            uuid=uuid,
            hostname=hostname,
        )
        return wire.load(ProfileCapacity, answer)
