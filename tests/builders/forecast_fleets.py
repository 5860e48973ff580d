# SPDX-License-Identifier: Apache-2.0
"""Hosts with cards in Placement, forecasts of their changes, and the changes."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cyborg_lite.conductor.explanations import ExplanationService
from cyborg_lite.conductor.forecasts import ForecastService
from cyborg_lite.conductor.group_candidates import CandidateFinder
from cyborg_lite.conductor.modes import ModeService
from cyborg_lite.conductor.nova_support import NovaRules
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import AttachHandle, Deployable, Device
from cyborg_lite.model.forecasts import (
    Forecast,
    ForecastRequest,
    HardwareChange,
    NewDevice,
    ProfileForecast,
)
from cyborg_lite.model.server_capacity import ProfileCapacity
from cyborg_lite.model.typed_attributes import TypedAttribute
from cyborg_lite.rpc.context import RequestContext
from tests.builders.provider_rows import add_device, change_device
from tests.builders.rows import add_handles
from tests.builders.selector_fleets import SyncRunner, store_attributes
from tests.builders.service_rows import mark_up
from tests.doubles.agents import FakeAgents

Card = tuple[str, int, tuple[str, ...]]  # resource class, units and traits

ADMIN = RequestContext(is_admin=True)


class ForecastFleet:
    """Hosts whose agents are up."""

    # Any: a fake Placement or the client of a real one.
    def __init__(self, database: Database, placement: Any) -> None:
        self.database, self.placement = database, placement
        self.runner = SyncRunner(database, placement)
        self.agents = FakeAgents()
        self.rules = NovaRules()
        self._slots = 0

    def add_host(self, cards: Sequence[Card] = ()) -> str:
        """Add a host with cards; return its name."""
        host = f'compute-{uuid4().hex[:8]}'
        self.placement.create_provider(str(uuid4()), host, None)
        mark_up(self.database, host)
        for card in cards:
            self.add_card(host, card)
        self.runner.sync(host)
        return host

    def add_card(
        self, host: str, card: Card, attributes: Sequence[TypedAttribute] = ()
    ) -> str:
        """Add a card without a sync; return the uuid of its device."""
        name, units, traits = card
        self._slots += 1
        address = f'0000:{self._slots:04x}:00.0'
        provider = add_device(
            self.database,
            host,
            address,
            resource_class=name,
            traits=list(traits),
            num_accelerators=units,
            typed_attributes=store_attributes(attributes),
        )
        change_device(self.database, provider, control_address=address)
        add_handles(self.database, provider, units)
        return self.database.read(_find_device, provider)

    def list_devices(self, host: str) -> list[str]:
        return self.database.read(_list_devices, host)

    def remove(self, host: str, device: str) -> None:
        """Remove a device, as when the host no longer reports it."""
        self.database.write(_remove_device, device)
        self.runner.sync(host)

    def make(self, host: str, new: NewDevice) -> None:
        """Add the new devices to a host."""
        for _number in range(new.count):
            for name, units in new.amounts.items():
                self.add_card(host, (name, units, new.traits), new.attributes)
        self.runner.sync(host)

    def forecast(self, *changes: HardwareChange, **request: Any) -> Forecast:
        finder = CandidateFinder(self.database, self.placement, self.rules)
        modes = ModeService(self.database, self.agents, lambda: None)
        service = ForecastService(self.database, finder, modes.plan)
        return service.forecast(ADMIN, ForecastRequest(changes, **request))

    def count(self, uuid: str) -> ProfileCapacity:
        explaining = ExplanationService(self.database, self.placement, self.rules)
        return explaining.count_capacity(None, uuid, None)


def read_hosts(capacity: ProfileCapacity | None) -> dict[str, tuple[int, bool]]:
    """Return the number of each host, and if it is exact."""
    assert capacity is not None
    return {host.hostname: (host.servers, host.is_exact) for host in capacity.hosts}


def check_after(forecast: ProfileForecast, capacity: ProfileCapacity) -> None:
    """Compare a forecast with the capacity after the change was made."""
    assert forecast.after is not None
    assert forecast.after.servers == capacity.servers
    assert forecast.after.choice == capacity.choice
    hosts = read_hosts(forecast.after)
    assert hosts.items() <= read_hosts(capacity).items()


def _find_device(session: Session, provider: str) -> str:
    statement = (
        select(Device.uuid)
        .join(Deployable, Deployable.device_id == Device.id)
        .where(Deployable.rp_uuid == provider)
    )
    return session.scalars(statement).one()


def _list_devices(session: Session, host: str) -> list[str]:
    statement = select(Device.uuid).where(Device.hostname == host).order_by(Device.id)
    return list(session.scalars(statement))


def _remove_device(session: Session, uuid: str) -> None:
    device = session.scalars(select(Device.id).where(Device.uuid == uuid)).one()
    parts = select(Deployable.id).where(Deployable.device_id == device)
    session.execute(delete(AttachHandle).where(AttachHandle.deployable_id.in_(parts)))
    session.execute(delete(Deployable).where(Deployable.device_id == device))
    session.execute(delete(Device).where(Device.id == device))
