# SPDX-License-Identifier: Apache-2.0
"""Cleans of devices, and decisions about units that are not clean."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from cyborg_lite.api.call import arguments, paging
from cyborg_lite.api.call.call import Call
from cyborg_lite.api.call.expose import accepts, expose, requires, since
from cyborg_lite.api.call.resource import Resource
from cyborg_lite.api.microversion import V2_7
from cyborg_lite.api.schemas import bodies
from cyborg_lite.api.views.cleanings import CleaningList
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.model.devices.cleaning import UnitSelection
from cyborg_lite.model.queries import Page
from cyborg_lite.model.text import is_storable


class _CleaningResource(Resource):
    """A path below ``/v2/devices/{uuid}/cleanings``."""

    def _select(self, call: Call) -> UnitSelection:
        """Return the units that the path and the body select."""
        uuid = call.parse_identifier(self.identifier, DeviceNotFound)
        body: Mapping[str, Any] = getattr(call, 'body', None) or {}
        return UnitSelection(uuid, body.get('unit', ''), body.get('force', ''))


class CleaningCollection(_CleaningResource):
    """``/v2/devices/{uuid}/cleanings``"""

    @expose()
    @requires('cyborg:cleaning:get_all')
    @since(V2_7)
    @accepts(arguments=arguments.PAGES)
    def get(self, call: Call) -> CleaningList:
        """List the units and the cleaning runs of a device, the latest run first.

        Each unit has the state of its cleaning, and each cleaning run has its steps and
        its result. Only administrators see the UUIDs in reasons and errors.
        """
        uuid = self._select(call).device_uuid
        query = paging.build_history_query(call)
        device = self.conductor.list_cleanings(call.caller, uuid, query)
        page = Page.build(device.cleanings, device.cursor)
        return CleaningList(
            uuid=uuid,
            units=device.units,
            cleanings=page,
            cleanings_links=paging.build_next_link(call, query, page),
        )


class RetryCleaning(_CleaningResource):
    """``/v2/devices/{uuid}/cleanings/retry``"""

    @expose(status=HTTPStatus.ACCEPTED, errors=(404, 409))
    @requires('cyborg:cleaning:retry')
    @since(V2_7)
    @accepts(body=bodies.RETRY_CLEANING)
    def post(self, call: Call) -> None:
        """Clean units of a device again.

        The service cleans the units whose cleaning run has failed, and those that were
        used and have the cleaning policy one-time. Without a unit in the body it cleans
        all such units of the device. The response is 409 if the device has none.
        """
        actor = call.caller.user_id or 'unknown'
        operation = self.conductor.retry_cleaning(
            call.caller, self._select(call), actor
        )
        call.locate_operation(operation)


class AcceptUnits(_CleaningResource):
    """``/v2/devices/{uuid}/cleanings/accept``"""

    @expose(status=HTTPStatus.NO_CONTENT, errors=(404, 409))
    @requires('cyborg:cleaning:accept')
    @since(V2_7)
    @accepts(body=bodies.ACCEPT_UNIT)
    def post(self, call: Call) -> None:
        """Declare units of a device clean.

        The units are those whose cleaning run has failed, and those that were used and
        have the cleaning policy one-time. The body names who has checked the units.
        Without a unit in the body all such units of the device become clean. The
        response is 409 if the device has none.
        """
        name = call.body['name'].strip()
        if not name or not is_storable(name):
            raise InvalidInput(reason='name must be text without NUL characters.')
        self.conductor.accept_units(call.caller, self._select(call), name)


class ResetDevice(_CleaningResource):
    """``/v2/devices/{uuid}/reset``"""

    @expose(status=HTTPStatus.ACCEPTED, errors=(404, 409))
    @requires('cyborg:cleaning:reset')
    @since(V2_7)
    @accepts(body=bodies.RESET_UNIT)
    def post(self, call: Call) -> None:
        """Reset the free units of a device, and prove that they are the same.

        The service runs the cleaning steps of each free unit, and of the units that
        wait for an operator. An NVMe drive is erased. No instance gets a unit until its
        steps have succeeded. The response is 409 while ARQs have units of the device,
        unless ``force`` names who decides. ARQs keep their units in any case.
        """
        operation = self.conductor.reset_device(call.caller, self._select(call))
        call.locate_operation(operation)
