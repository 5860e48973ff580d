# SPDX-License-Identifier: Apache-2.0
"""What an operator wants of a device, told to the database and to Placement as one."""

from oslo_log import log

from cyborg_lite.conductor.placement_sync import PlacementSync
from cyborg_lite.db import devices
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.devices import DeviceStatus

LOG = log.getLogger(__name__)


class Devices:
    """Who asks waits for Placement: a device in maintenance gets no new server."""

    def __init__(self, database: Database, sync: PlacementSync) -> None:
        self._database = database
        self._sync = sync

    def set_status(self, uuid: str, status: DeviceStatus, reason: str = '') -> None:
        """Have Placement reserve all of the device, or give it free again.

        The job that is written with the change keeps the promise should this process
        die before Placement was asked.

        :param reason: of a maintenance; kept, and shown to whoever looks at the device
        :raises DeviceNotFound: no such device
        :raises ServiceUnavailable: Placement is away; the device is as it was before
        :raises PlacementConflict: others kept changing it; likewise
        """
        changed = self._database.write(devices.set_status, uuid, status, reason)
        if changed is None:
            return
        try:
            self._sync.sync(changed.hostname)
        except CyborgError:
            before = (changed.status, changed.reason)
            self._database.write(devices.set_status, uuid, *before)
            raise
        LOG.info('Device %s on host %s is %s now', uuid, changed.hostname, status)
