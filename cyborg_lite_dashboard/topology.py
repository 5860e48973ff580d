# SPDX-License-Identifier: Apache-2.0
"""Picture of the topology of a host, from the JSON of the API."""

from collections.abc import Mapping
from typing import Any

from cyborg_lite.model.hosts.topology import (
    Availability,
    HostTopology,
    NumaNode,
    TopologyDeployable,
    TopologyDevice,
    TopologyUnit,
    UnitUser,
)
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.rendering.svg import format_svg

Json = Mapping[str, Any]


def draw_topology(answer: Json) -> str:
    """Return the picture as an SVG document."""
    return format_svg(build_topology(answer))


def build_topology(answer: Json) -> HostTopology:
    """Return the topology in a response of the API."""
    return HostTopology(
        answer['hostname'],
        answer['agent_state'],
        tuple(
            NumaNode(node['number'], tuple(map(_build_device, node['devices'])))
            for node in answer['numa_nodes']
        ),
    )


def _build_device(device: Json) -> TopologyDevice:
    return TopologyDevice(
        uuid=device['uuid'],
        address=device['address'],
        type=device['type'],
        vendor=device['vendor'],
        model=device['model'],
        driver='',  # the API does not name it
        status=device['status'],
        status_reason=device['status_reason'],
        health=Health(device['health']),
        health_reason=device['health_reason'],
        deployables=tuple(map(_build_deployable, device['deployables'])),
        pci_bridges=tuple(device['pci_bridges']),
    )


def _build_deployable(item: Json) -> TopologyDeployable:
    return TopologyDeployable(
        uuid=item['uuid'],
        name=item['name'],
        parent_uuid=item['parent_uuid'],
        resource_class=item['resource_class'],
        traits=tuple(item['traits']),
        total=item['total'],
        reserved=item['reserved'],
        rp_uuid=item['rp_uuid'],
        bitstream_id=item['bitstream_id'],
        units=tuple(map(_build_unit, item['units'])),
    )


def _build_unit(unit: Json) -> TopologyUnit:
    user = unit.get('user')  # absent: the viewer is no administrator
    return TopologyUnit(
        name=unit['name'],
        type=unit['type'],
        availability=Availability(unit['availability']),
        reason=unit['reason'] or '',
        user=UnitUser(**user) if user else None,
    )
