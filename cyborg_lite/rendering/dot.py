# SPDX-License-Identifier: Apache-2.0
"""Topology of a host in the DOT language of Graphviz."""

from collections.abc import Iterator
from typing import Final

from cyborg_lite.model.host_topology import HostTopology
from cyborg_lite.rendering.outline import Box, Tone, build_outline
from cyborg_lite.rendering.unit_rows import list_unit_rows

_COLORS: Final = {Tone.GOOD: '#f5f8fb', Tone.WARNING: '#fff3d6', Tone.BAD: '#fde3e1'}


def format_dot(topology: HostTopology) -> str:
    """Return a directed graph, left to right."""
    root = build_outline(topology)
    return '\n'.join(
        (
            'digraph topology {',
            '  rankdir=LR;',
            '  node [shape=box, style="rounded,filled", fontname="sans-serif"];',
            *_format_boxes(root, 'n'),
            '}',
        )
    )


def _format_boxes(box: Box, name: str) -> Iterator[str]:
    lines = [box.title, *box.lines]
    rows = [f'{row.availability}: {row.text}' for row in list_unit_rows(box.units)]
    label = ''.join(f'{_escape(line)}\\l' for line in lines + rows)
    yield f'  {name} [label="{label}", fillcolor="{_COLORS[box.tone]}"];'
    for number, child in enumerate(box.children):
        child_name = f'{name}_{number}'
        yield from _format_boxes(child, child_name)
        yield f'  {name} -> {child_name};'


def _escape(text: str) -> str:
    printable = ''.join(char if char.isprintable() else '\ufffd' for char in text)
    return printable.replace('\\', '\\\\').replace('"', '\\"')
