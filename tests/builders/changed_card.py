# SPDX-License-Identifier: Apache-2.0
"""A stored card whose mode or configuration a job changes."""

from sqlalchemy import select, update

from cyborg_lite.clients.placement import Consumer
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle
from cyborg_lite.db.devices import devices
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.devices.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.inventory.host_report import Device, HostReport
from cyborg_lite.model.queries import Query
from tests.builders.reports import HOST
from tests.builders.rows import PROJECT, add_arqs
from tests.doubles.placement import FakePlacement


class ChangedCard:
    """The only card of the database, and a Placement with its syncs."""

    def __init__(self, database: Database, card: Device) -> None:
        self.database, self.card = database, card
        self.placement = FakePlacement()
        self.synced: list[DeviceStatus] = []
        """Status of the device at each sync."""
        database.write(reports.store_report, HostReport(HOST, 'boot', (card,)))

    def sync(self, host: str) -> None:
        self.synced.append(self.device().status)

    def device(self) -> DeviceRecord:
        (record,) = self.database.read(devices.list_devices, Query(detailed=True))
        return record

    def set_maintaining(self, reason: str) -> None:
        status = DeviceStatus.MAINTAINING
        self.database.write(
            devices.set_device_status, self.device().uuid, status, reason
        )

    def is_held(self) -> bool:
        preparing = select(AttachHandle.preparing)
        flags = set(self.database.read(lambda s: s.scalars(preparing).all()))
        assert len(flags) == 1
        return flags == {True}

    def claim_handle(self) -> str:
        """Claim the first handle; return the ARQ."""
        (arq,) = add_arqs(self.database, 1)
        key = self.card.root.handles[0].key
        claim = update(AttachHandle).where(AttachHandle.key == key)
        self.database.write(lambda s: s.execute(claim.values(arq_uuid=arq)))
        return arq

    def allocate(self) -> None:
        """Allocate the card in Placement to a consumer named ``instance``."""
        allocations = {self.card.root.provider_uuid: {'VGPU': 1}}
        self.placement.consumers['instance'] = Consumer(
            'instance', PROJECT, PROJECT, 1, allocations
        )
