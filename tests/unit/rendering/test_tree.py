# SPDX-License-Identifier: Apache-2.0
"""Tests of the topology as text."""

from cyborg_lite.rendering.tree import format_tree
from tests.builders.host_topologies import PROJECT, build_topology


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
