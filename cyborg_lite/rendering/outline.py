# SPDX-License-Identifier: Apache-2.0
"""Outline of a host: the boxes of every picture with their text, and the text tree."""

import enum
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.hosts.topology import (
    Availability,
    HostTopology,
    TopologyDeployable,
    TopologyDevice,
    TopologyUnit,
    count_units,
)
from cyborg_lite.model.inventory.host_report import UNUSABLE_HEALTH, Health

_NO_NUMA_NODE: Final = 'No NUMA node'
_MAX_TRAITS: Final = 4


class BoxKind(enum.StrEnum):
    """The thing that a box shows."""

    HOST = 'host'
    NUMA = 'numa'
    BRIDGE = 'bridge'
    DEVICE = 'device'
    DEPLOYABLE = 'deployable'


class Tone(enum.StrEnum):
    """The attention that a box needs."""

    GOOD = 'good'
    WARNING = 'warning'
    BAD = 'bad'


@dataclass(frozen=True, slots=True)
class Box:
    """A box with its text, its units, and the boxes below it."""

    kind: BoxKind
    title: str
    lines: tuple[str, ...] = ()
    tone: Tone = Tone.GOOD
    units: tuple[TopologyUnit, ...] = ()
    children: tuple['Box', ...] = ()

    def walk(self) -> Iterator['Box']:
        """Yield the box and all boxes below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def build_outline(topology: HostTopology) -> Box:
    """Return the box of a host."""
    units = [
        unit
        for device in topology.devices
        for item in device.deployables
        for unit in item.units
    ]
    agent = topology.agent_state or 'not registered'
    return Box(
        BoxKind.HOST,
        topology.hostname,
        (f'agent {agent}', describe_counts(count_units(units))),
        Tone.GOOD if topology.agent_state == ServiceState.UP else Tone.BAD,
        children=tuple(
            Box(
                BoxKind.NUMA,
                _NO_NUMA_NODE if node.number is None else f'NUMA node {node.number}',
                children=tuple(_build_bus_boxes(node.devices, 0, topology.hostname)),
            )
            for node in topology.numa_nodes
        ),
    )


def describe_counts(counts: Mapping[Availability, int]) -> str:
    """Return numbers of units as text, such as ``4 units: 3 free, 1 used``."""
    total = sum(counts.values())
    if not total:
        return 'no units'
    detail = ', '.join(f'{count} {state}' for state, count in counts.items())
    return f'{total} unit{"s" if total > 1 else ""}: {detail}'


def describe_health(device: TopologyDevice) -> list[str]:
    """Return the health of a device with its reason, as one or two texts."""
    if not device.health_reason:
        return [device.health]
    if device.health is not Health.OK:
        return [f'{device.health}: {device.health_reason}']
    # The driver or the conductor leaves out something of a device without a fault.
    label = 'note' if device.count_units() else 'not offered'
    return [device.health, f'{label}: {device.health_reason}']


def describe_unit(unit: TopologyUnit) -> str:
    """Return the user of a unit, or why it is withheld; empty if it is free."""
    user = unit.user
    words = [unit.reason] if unit.reason else []
    if user is not None:
        words.append(f'profile {user.device_profile_name}')
        if user.instance_uuid:
            words.append(f'instance {user.instance_uuid}')
        if user.project_id:
            words.append(f'project {user.project_id}')
        words.append(f'ARQ {user.arq_uuid} ({user.arq_state})')
    return ', '.join(words)


def _build_bus_boxes(
    devices: Sequence[TopologyDevice], depth: int, hostname: str
) -> Iterator[Box]:
    """Yield the boxes of devices that share their first bridges.

    A bridge has a box if several devices are below it. Other bridges are a line in the
    box of their device.

    :param depth: number of bridges above all the devices that have a box
    """
    for bridge, group in _group_by_bridge(devices, depth):
        if bridge is None or len(group) == 1:
            for device in group:
                yield _build_device_box(device, depth, hostname)
        else:
            below = depth + _count_shared(group, depth)
            title, *lines = _describe_bridges(group[0].pci_bridges[:below], depth)
            boxes = tuple(_build_bus_boxes(group, below, hostname))
            yield Box(BoxKind.BRIDGE, title, tuple(lines), children=boxes)


def _group_by_bridge(
    devices: Iterable[TopologyDevice], depth: int
) -> Iterator[tuple[str | None, list[TopologyDevice]]]:
    """Yield the next bridge and the devices below it; None: they have no further one.

    The order is that of the devices.
    """
    groups: dict[str | None, list[TopologyDevice]] = {}
    for device in devices:
        bridges = device.pci_bridges[depth : depth + 1]
        groups.setdefault(bridges[0] if bridges else None, []).append(device)
    yield from groups.items()


def _count_shared(devices: Sequence[TopologyDevice], depth: int) -> int:
    """Return the number of bridges below ``depth`` that all the devices share."""
    chains = [device.pci_bridges[depth:] for device in devices]
    # What the first and the last chain in order share is in all chains between them.
    pairs = zip(min(chains), max(chains), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _describe_bridges(bridges: Sequence[str], depth: int) -> list[str]:
    """Return a line for each bridge from ``depth`` on."""
    return [
        f'{"PCIe switch port" if number else "PCIe root port"} {bridge}'
        for number, bridge in enumerate(bridges)
        if number >= depth
    ]


def _build_device_box(device: TopologyDevice, depth: int, hostname: str) -> Box:
    """Return the box of a device.

    :param depth: number of bridges above the device that have a box
    """
    lines = [f'{device.type} {device.address}']
    lines += _describe_bridges(device.pci_bridges, depth)
    health, *remarks = describe_health(device)
    lines += [f'health {health}', *remarks]
    if device.status != 'enabled':
        reason = f': {device.status_reason}' if device.status_reason else ''
        lines.append(f'{device.status}{reason}')
    return Box(
        BoxKind.DEVICE,
        device.model or device.vendor,
        tuple(lines),
        _find_tone(device),
        children=tuple(_build_children(device, None, hostname)),
    )


def _find_tone(device: TopologyDevice) -> Tone:
    if device.health in UNUSABLE_HEALTH:
        return Tone.BAD
    is_good = device.health is Health.OK and device.status == 'enabled'
    return Tone.GOOD if is_good else Tone.WARNING


def _build_children(
    device: TopologyDevice, parent: str | None, hostname: str
) -> Iterator[Box]:
    """Yield the boxes below a deployable; None: below the device.

    A deployable that only has children gets no box.
    """
    for item in device.list_children(parent):
        boxes = tuple(_build_children(device, item.uuid, hostname))
        if item.resource_class is None and not item.units:
            yield from boxes
        else:
            yield _build_deployable_box(item, hostname, boxes)


def _build_deployable_box(
    item: TopologyDeployable, hostname: str, children: tuple[Box, ...]
) -> Box:
    hidden = len(item.traits) - _MAX_TRAITS
    lines = [item.resource_class or 'not scheduled', *item.traits[:_MAX_TRAITS]]
    if hidden > 0:
        lines.append(f'{hidden} more traits')
    if item.bitstream_id:
        lines.append(f'bitstream {item.bitstream_id}')
    lines.append(describe_counts(count_units(item.units)))
    broken = any(unit.availability is Availability.BROKEN for unit in item.units)
    return Box(
        BoxKind.DEPLOYABLE,
        item.name.removeprefix(f'{hostname}_'),
        tuple(lines),
        Tone.BAD if broken else Tone.GOOD,
        item.units,
        children,
    )


def format_tree(topology: HostTopology) -> str:
    """Return the tree, one line per box and unit."""
    root = build_outline(topology)
    return '\n'.join([_format_box(root), *_format_children(root, '')])


def _format_children(box: Box, indent: str) -> Iterator[str]:
    children: list[Box | TopologyUnit] = [*box.units, *box.children]
    for child in children:
        is_last = child is children[-1]
        branch, below = ('└─ ', '   ') if is_last else ('├─ ', '│  ')
        if isinstance(child, Box):
            yield f'{indent}{branch}{_format_box(child)}'
            yield from _format_children(child, indent + below)
        else:
            yield f'{indent}{branch}{_format_unit(child)}'


def _format_box(box: Box) -> str:
    return _escape('  '.join((box.title, *box.lines)))


def _format_unit(unit: TopologyUnit) -> str:
    words = unit.name, unit.type, str(unit.availability), describe_unit(unit)
    return _escape('  '.join(word for word in words if word))


def _escape(text: str) -> str:
    """Return the text without characters that could control the terminal."""
    return ''.join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
