# SPDX-License-Identifier: Apache-2.0
"""Topologies of hosts, and daemons, in the responses of the API."""

from datetime import datetime
from typing import Any

from wsme import types

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_6, V2_7
from cyborg_lite.api.views.shapes import (
    REASON,
    REASON_OR_NULL,
    UUID,
    enum_of,
    nullable,
    optional,
    since,
    source,
    until,
)
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, ListView, View
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.hosts.topology import Availability, TopologyUnit
from cyborg_lite.model.inventory.host_report import Health


class UnitUserView(View):
    """The ARQ that owns a unit, with its instance and project."""

    arq_uuid = UUID
    arq_state = enum_of(State)
    device_profile_name = str
    instance_uuid = nullable(UUID)
    project_id = nullable(str)


class TopologyUnitView(View):
    """A unit; only administrators see ``user`` and the UUIDs in ``reason``."""

    name = str
    type = str
    availability = enum_of(Availability)
    reason = REASON_OR_NULL
    user = optional(nullable(UnitUserView))

    # Any: ``Unset`` has no type.
    @staticmethod
    def render_user(unit: TopologyUnit, call: Call) -> Any:
        """Return the ARQ of the unit to an administrator."""
        return unit.user if call.caller.is_admin else types.Unset


class TopologyDeployableView(View):
    """A deployable; ``parent_uuid`` is null if it is the device itself.

    ``total`` counts units in Placement. ``reserved`` counts the units of them that the
    driver withholds without naming them.
    """

    uuid = UUID
    name = str
    parent_uuid = nullable(UUID)
    resource_class = nullable(str)
    traits = [str]
    total = int
    reserved = int
    rp_uuid = nullable(UUID)
    bitstream_id = nullable(str)
    units = [TopologyUnitView]


class TopologyDeviceView(View):
    """A device; ``address`` is the PCI address of the function that manages it.

    Its deployables follow in such an order that parents come before their children.
    ``pci_bridges`` are the PCI addresses of the bridges above the device, the root port
    first. The list is empty if they are not known.
    """

    uuid = UUID
    address = str
    type = str
    vendor = str
    model = str
    status = enum_of(DeviceStatus)
    status_reason = REASON
    health = enum_of(Health)
    health_reason = REASON
    pci_bridges = [str]
    deployables = [TopologyDeployableView]


class NumaNodeView(View):
    """A NUMA node; ``number`` is null if the platform reports none."""

    number = nullable(int)
    devices = [TopologyDeviceView]


class HostTopologyView(View):
    """The NUMA nodes of a host with their devices.

    ``agent_state`` is null if the host has devices, but no agent is registered.
    """

    _path = 'v2/hosts/{hostname}/topology'

    hostname = str
    agent_state = nullable(enum_of(ServiceState))
    numa_nodes = [NumaNodeView]
    links = LINKS


class HostView(View):
    """A host with an agent or devices; without an agent its fields are null.

    ``status`` is that of all devices, and null if they differ or there are none.
    ``maintaining_count`` counts the devices in maintenance.
    """

    _path = 'v2/hosts/{name}'

    name = str
    status = nullable(enum_of(DeviceStatus))
    agent_state = source('agent', nullable(enum_of(ServiceState)))
    version = nullable(str)
    started_at = nullable(datetime)
    heartbeat_at = nullable(datetime)
    devices_count = source('devices', int)
    maintaining_count = source('maintaining', int)
    arqs_count = source('arqs', int)
    links = LINKS


class HostList(ListView):
    """A page of hosts."""

    hosts = [HostView]
    hosts_links = NEXT_LINKS


class ServiceView(View):
    """A daemon on a host. Since 2.7 agents belong to hosts, and are not shown."""

    uuid = UUID
    binary = str
    host = until(V2_6, str)
    state = enum_of(ServiceState)
    version = str
    started_at = datetime
    heartbeat_at = datetime
    hostname = since(V2_7, source('host', str))


class ServiceList(ListView):
    """A page of daemons."""

    services = [ServiceView]
    services_links = NEXT_LINKS
