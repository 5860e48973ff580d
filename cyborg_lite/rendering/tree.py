# SPDX-License-Identifier: Apache-2.0
"""Topology of a host as a tree of text for a terminal."""

from collections.abc import Iterator

from cyborg_lite.model.hosts.topology import HostTopology, TopologyUnit
from cyborg_lite.rendering.outline import Box, build_outline, describe_unit


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
