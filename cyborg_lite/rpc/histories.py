# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor about past events and use; part of ``ConductorAPI``."""

from cyborg_lite.model.device_events import DeviceEvent
from cyborg_lite.model.usages import UsageQuery, UsageReport
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Caller


class HistoryCalls:
    """Typed calls about past events and use."""

    _caller: Caller

    def list_device_events(
        self, context: RequestContext, device_uuid: str
    ) -> tuple[DeviceEvent, ...]:
        """Return the latest events of a device, the latest first.

        :raises DeviceNotFound: there is neither a device nor an event with the uuid
        """
        answer = self._caller.call(
            context, 'list_device_events', since='1.10', device_uuid=device_uuid
        )
        return wire.load_all(DeviceEvent, answer)

    def sum_usages(self, context: RequestContext, query: UsageQuery) -> UsageReport:
        """Return the use of units by project, resource class and device profile.

        :raises UsageTooLarge: the answer would be too large
        """
        answer = self._caller.call(
            context, 'sum_usages', since='1.10', query=wire.dump(query)
        )
        return wire.load(UsageReport, answer)
