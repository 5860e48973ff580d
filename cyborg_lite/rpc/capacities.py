# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor about the capacity for servers; part of ``ConductorAPI``."""

from cyborg_lite.model.forecasts import Forecast, ForecastRequest
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

    def forecast_capacity(
        self, context: RequestContext, request: ForecastRequest
    ) -> Forecast:
        """Return the effect of changes of hardware that are not made.

        :raises DeviceNotFound: a device of a change does not exist
        :raises DeviceProfileNotFound: a profile does not exist
        :raises InvalidInput: the request has too many profiles or groups
        :raises ModeRefused: a device has no such mode, or its inventory is changing
        :raises HostAway: the agent of a device that gets another mode does not answer
        """
        answer = self._caller.call(
            context, 'forecast_capacity', since='1.20', request=wire.dump(request)
        )
        return wire.load(Forecast, answer)
