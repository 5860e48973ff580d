# SPDX-License-Identifier: Apache-2.0
"""Calls of the conductor about the cleaning of units; part of ``ConductorAPI``."""

from cyborg_lite.model.cleaning import DeviceCleanings, UnitSelection
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Caller


class CleaningCalls:
    """Typed calls about the cleaning of units."""

    _caller: Caller

    def list_cleanings(
        self, context: RequestContext, device_uuid: str
    ) -> DeviceCleanings:
        """Return the units of a device and its cleans, the latest first.

        :raises DeviceNotFound: the device does not exist
        """
        answer = self._caller.call(
            context, 'list_cleanings', since='1.3', device_uuid=device_uuid
        )
        return wire.load(DeviceCleanings, answer)

    def retry_cleaning(
        self, context: RequestContext, selection: UnitSelection, actor: str
    ) -> int:
        """Clean units again that wait for an operator; return their number.

        :raises DeviceNotFound: the device does not exist
        :raises CleaningRefused: no selected unit waits for an operator
        """
        units = wire.dump(selection)
        return int(
            self._caller.call(
                context, 'retry_cleaning', since='1.3', selection=units, actor=actor
            )
        )

    def accept_units(
        self, context: RequestContext, selection: UnitSelection, actor: str
    ) -> int:
        """Declare units clean that wait for an operator; return their number.

        :raises DeviceNotFound: the device does not exist
        :raises CleaningRefused: no selected unit waits for an operator
        """
        units = wire.dump(selection)
        return int(
            self._caller.call(
                context, 'accept_units', since='1.3', selection=units, actor=actor
            )
        )
