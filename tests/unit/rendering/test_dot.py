# SPDX-License-Identifier: Apache-2.0
"""Tests of the topology in the DOT language."""

import re

from cyborg_lite.rendering.dot import format_dot
from tests.builders.host_topologies import build_topology


def test_dot_has_node_and_edge_per_box() -> None:
    text = format_dot(build_topology())
    assert text.startswith('digraph topology {')
    assert text.endswith('}')
    nodes = re.findall(r'^  (\w+) \[label="', text, re.MULTILINE)
    edges = re.findall(r'^  (\w+) -> (\w+);$', text, re.MULTILINE)
    assert len(nodes) == len(set(nodes)) == 7
    assert {end for _, end in edges} == set(nodes) - {'n'}


def test_dot_escapes_quotes_and_controls() -> None:
    text = format_dot(build_topology())
    assert 'alert(\\"&\ufffd[31m\\")' in text
    assert '\x1b' not in text
