# SPDX-License-Identifier: Apache-2.0
"""Topology of a host in the responses of the API."""

from typing import Any, Self
from urllib.parse import quote

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_30
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.reasons import render_reason
from cyborg_lite.api.views.selection import select_view
from cyborg_lite.api.views.shapes import UUID, enum_of, nullable, optional, since
from cyborg_lite.api.views.view import View
from cyborg_lite.model.arqs import State
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.host_topology import (
    Availability,
    HostTopology,
    NumaNode,
    TopologyDeployable,
    TopologyDevice,
    TopologyUnit,
    UnitUser,
)
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.services import ServiceState


class UnitUserView(View):
    """The ARQ that owns a unit, with its instance and project."""

    arq_uuid = UUID
    arq_state = enum_of(State)
    device_profile_name = str
    instance_uuid = nullable(UUID)
    project_id = nullable(str)

    @classmethod
    def build(cls, user: UnitUser) -> Self:
        """Build the view."""
        return cls(
            arq_uuid=user.arq_uuid,
            arq_state=user.arq_state,
            device_profile_name=user.device_profile_name,
            instance_uuid=user.instance_uuid,
            project_id=user.project_id,
        )


class TopologyUnitView(View):
    """A unit; only administrators see ``user`` and the UUIDs in ``reason``."""

    name = str
    type = str
    availability = enum_of(Availability)
    reason = nullable(str)
    user = optional(nullable(UnitUserView))

    @classmethod
    def build(cls, unit: TopologyUnit, is_admin: bool) -> Self:
        """Build the view."""
        user: Any = unit.user and UnitUserView.build(unit.user)
        return cls(
            name=unit.name,
            type=unit.type,
            availability=unit.availability.value,
            reason=render_reason(unit.reason, shows_uuids=is_admin) or None,
            user=user if is_admin else types.Unset,
        )


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

    @classmethod
    def build(cls, item: TopologyDeployable, is_admin: bool) -> Self:
        """Build the view."""
        return cls(
            uuid=item.uuid,
            name=item.name,
            parent_uuid=item.parent_uuid,
            resource_class=item.resource_class,
            traits=list(item.traits),
            total=item.total,
            reserved=item.reserved,
            rp_uuid=item.rp_uuid,
            bitstream_id=item.bitstream_id,
            units=[TopologyUnitView.build(unit, is_admin) for unit in item.units],
        )


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
    status_reason = str
    health = enum_of(Health)
    health_reason = str
    pci_bridges = since(V2_30, [str])
    deployables = [TopologyDeployableView]

    @classmethod
    def build(cls, device: TopologyDevice, call: Call) -> Self:
        """Build the view."""
        bridges: Any = types.Unset
        if call.microversion >= V2_30:
            bridges = list(device.pci_bridges)
        is_admin = bool(call.caller.is_admin)
        return cls(
            uuid=device.uuid,
            address=device.address,
            type=device.type,
            vendor=device.vendor,
            model=device.model,
            status=device.status,
            status_reason=render_reason(device.status_reason, shows_uuids=is_admin),
            health=device.health.value,
            health_reason=render_reason(device.health_reason, shows_uuids=is_admin),
            pci_bridges=bridges,
            deployables=[
                TopologyDeployableView.build(item, is_admin)
                for item in device.deployables
            ],
        )


class NumaNodeView(View):
    """A NUMA node; ``number`` is null if the platform reports none."""

    number = nullable(int)
    devices = [TopologyDeviceView]

    @classmethod
    def build(cls, node: NumaNode, call: Call) -> Self:
        """Build the view."""
        return cls(
            number=node.number,
            devices=[TopologyDeviceView.build(device, call) for device in node.devices],
        )


class HostTopologyView(View):
    """The NUMA nodes of a host with their devices.

    ``agent_state`` is null if the host has devices, but no agent is registered.
    """

    hostname = str
    agent_state = nullable(enum_of(ServiceState))
    numa_nodes = [NumaNodeView]
    links = [Link]

    @classmethod
    def build(cls, topology: HostTopology, call: Call) -> Self:
        """Build the view."""
        path = f'v2/hosts/{quote(topology.hostname, safe="")}/topology'
        nodes = topology.numa_nodes if call.selects('numa_nodes') else ()
        view = cls(
            hostname=topology.hostname,
            agent_state=topology.agent_state,
            numa_nodes=[NumaNodeView.build(node, call) for node in nodes],
            links=Link.build_self_links(call.links, path),
        )
        return select_view(view, call.fields)
