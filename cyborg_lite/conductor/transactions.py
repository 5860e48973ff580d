# SPDX-License-Identifier: Apache-2.0
"""Methods of the interface that are one transaction of the database each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from cyborg_lite.db import attention
from cyborg_lite.db.arqs import usages
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import deployables, devices
from cyborg_lite.db.hosts import host_topology, hosts, services
from cyborg_lite.db.inventory import device_events
from cyborg_lite.db.profiles import selectors
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

P = ParamSpec('P')
R = TypeVar('R')


# Any: the interface, and a session of the database.
def _reads(
    declared: Callable[Concatenate[Any, RequestContext, P], R],
    work: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate['Transactions', P], R]:
    """Return the method that reads the database with a function."""

    @serves(declared)
    def method(service: 'Transactions', /, *args: P.args, **kwargs: P.kwargs) -> R:
        return service.database.read(work, *args, **kwargs)

    return method


def _writes(
    declared: Callable[Concatenate[Any, RequestContext, P], R],
    work: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate['Transactions', P], R]:
    """Return the method that writes the database with a function."""

    @serves(declared)
    def method(service: 'Transactions', /, *args: P.args, **kwargs: P.kwargs) -> R:
        return service.database.write(work, *args, **kwargs)

    return method


@dataclass(frozen=True, slots=True)
class Transactions:
    """Reads and writes what needs nothing but the database."""

    database: Database

    list_devices = _reads(Conductor.list_devices, devices.list_devices)
    list_device_events = _reads(Conductor.list_device_events, device_events.list_events)
    list_attribute_declarations = _reads(
        Conductor.list_attribute_declarations, selectors.list_declarations
    )
    list_deployables = _reads(Conductor.list_deployables, deployables.list_deployables)
    list_attributes = _reads(Conductor.list_attributes, deployables.list_attributes)
    create_attribute = _writes(Conductor.create_attribute, deployables.create_attribute)
    delete_attribute = _writes(Conductor.delete_attribute, deployables.delete_attribute)
    sum_usages = _reads(Conductor.sum_usages, usages.sum_usages)
    show_topology = _reads(
        Conductor.show_host_topology, host_topology.read_host_topology
    )
    list_attention = _reads(Conductor.list_attention, attention.list_attention)
    list_hosts = _reads(Conductor.list_hosts, hosts.list_hosts)
    delete_service = _writes(Conductor.delete_service, services.delete_service)
    list_services = _reads(Conductor.list_services, services.list_services)

    @serves(Conductor.check_database)
    def check_database(self) -> None:
        self.database.read(services.list_services, Query(limit=1))

    @serves(Conductor.echo)
    def echo(self) -> None:
        """Do nothing."""
