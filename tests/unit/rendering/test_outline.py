# SPDX-License-Identifier: Apache-2.0
"""Tests of the boxes of a picture."""

from dataclasses import replace

from cyborg_lite.model.hosts.topology import Availability, HostTopology
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.rendering.outline import (
    Box,
    BoxKind,
    Tone,
    build_outline,
    describe_counts,
    describe_unit,
    format_tree,
)
from tests.builders.host_topologies import (
    PROJECT,
    USER,
    build_shared_topology,
    build_topology,
    build_unit,
)


def build_device_box(**fields: object) -> Box:
    topology = build_topology()
    node = topology.numa_nodes[0]
    device = replace(node.devices[0], **fields)  # type: ignore[arg-type]  # any field
    nodes = (replace(node, devices=(device,)),)
    boxes = build_outline(replace(topology, numa_nodes=nodes)).walk()
    return next(box for box in boxes if box.kind is BoxKind.DEVICE)


def test_outline_skips_deployable_without_units() -> None:
    kinds = [box.kind for box in build_outline(build_topology()).walk()]
    assert kinds.count(BoxKind.DEPLOYABLE) == 2
    assert kinds.count(BoxKind.DEVICE) == 2


def test_outline_counts_units_of_host() -> None:
    root = build_outline(build_topology())
    assert root.lines == (
        'agent up',
        '4 units: 1 free, 1 used, 1 reserved, 1 broken',
    )
    assert root.tone is Tone.GOOD
    empty = build_outline(HostTopology('compute-2', None))
    assert empty.lines == ('agent not registered', 'no units')
    assert empty.tone is Tone.BAD


def test_outline_tone_follows_health_and_status() -> None:
    assert build_device_box().tone is Tone.GOOD
    assert build_device_box(health=Health.DEGRADED).tone is Tone.WARNING
    assert build_device_box(status='maintaining').tone is Tone.WARNING
    failed = build_device_box(health=Health.FAILED, health_reason='no link')
    assert failed.tone is Tone.BAD
    assert 'health failed: no link' in failed.lines


def test_outline_tells_health_from_reason_not_to_offer() -> None:
    reason = 'same drive as 0000:41:00.0: serial number S1'
    box = build_device_box(health_reason=reason, deployables=())
    assert box.lines[-2:] == ('health ok', f'not offered: {reason}')
    box = build_device_box(health_reason='The change to VGPU is refused')
    assert box.lines[-2:] == ('health ok', 'note: The change to VGPU is refused')


def test_describe_unit_names_user_and_reason() -> None:
    text = describe_unit(build_unit('a', Availability.BROKEN, 'It is gone.', USER))
    for word in ('It is gone.', USER.project_id, USER.instance_uuid, USER.arq_uuid):
        assert str(word) in text
    assert describe_unit(build_unit('a', Availability.FREE)) == ''


def test_describe_counts_one_unit() -> None:
    assert describe_counts({Availability.FREE: 1}) == '1 unit: 1 free'


def list_lines(box: Box, depth: int = 0) -> list[str]:
    """Return title and PCIe lines of the boxes above deployables, indented."""
    if box.kind is BoxKind.DEPLOYABLE:
        return []
    lines = [box.title if box.kind is not BoxKind.DEVICE else box.lines[0]]
    lines += [line for line in box.lines if line.startswith('PCIe')]
    return [f'{" " * depth}{", ".join(lines)}'] + [
        line for child in box.children for line in list_lines(child, depth + 1)
    ]


def test_outline_has_box_of_each_shared_bridge() -> None:
    (numa,) = build_outline(build_shared_topology()).children
    assert list_lines(numa) == [
        'NUMA node 0',
        ' PCIe root port 0000:40:01.0',
        '  PCIe switch port 0000:41:00.0',
        '   GPU 0000:43:00.0, PCIe switch port 0000:42:00.0',
        '   GPU 0000:44:00.0, PCIe switch port 0000:42:01.0',
        '  GPU 0000:45:00.0',
        ' GPU 0000:46:00.0, PCIe root port 0000:40:03.0',
        ' GPU 0000:47:00.0',
    ]


def test_outline_joins_bridges_that_all_devices_share() -> None:
    topology = build_shared_topology()
    (node,) = topology.numa_nodes
    nodes = (replace(node, devices=node.devices[:2]),)
    (numa,) = build_outline(replace(topology, numa_nodes=nodes)).children
    assert list_lines(numa)[1:] == [
        ' PCIe root port 0000:40:01.0, PCIe switch port 0000:41:00.0',
        '  GPU 0000:43:00.0, PCIe switch port 0000:42:00.0',
        '  GPU 0000:44:00.0, PCIe switch port 0000:42:01.0',
    ]


def test_outline_functions_of_one_slot_share_box() -> None:
    topology = build_shared_topology()
    (node,) = topology.numa_nodes
    equal_chains = [replace(device, pci_bridges=('a',)) for device in node.devices[:2]]
    nodes = (replace(node, devices=tuple(equal_chains)),)
    (numa,) = build_outline(replace(topology, numa_nodes=nodes)).children
    assert list_lines(numa)[1:] == [
        ' PCIe root port a',
        '  GPU 0000:43:00.0',
        '  GPU 0000:44:00.0',
    ]


def test_tree_has_line_per_box_and_unit() -> None:
    lines = format_tree(build_topology()).splitlines()
    assert lines[0].startswith('compute-1  agent up  4 units')
    assert lines[1] == '├─ NUMA node 0'
    (used,) = [line for line in lines if PROJECT in line]
    assert used.startswith('│        ├─ 0000:41:00.1  PCI  used  profile small-gpu')
    assert len(lines) == 11


def test_tree_escapes_terminal_controls() -> None:
    text = format_tree(build_topology())
    assert '\x1b' not in text
    assert '\\x1b[31m' in text
