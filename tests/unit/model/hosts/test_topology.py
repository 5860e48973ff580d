# SPDX-License-Identifier: Apache-2.0
"""Tests of the model of a host's topology."""

from typing import Any

import pytest

from cyborg_lite.model.hosts.topology import (
    format_bridges,
    group_by_numa_node,
    read_bridges,
    read_numa_node,
)
from tests.builders.host_topologies import build_device


def test_group_by_numa_node_sorts_nodes_and_addresses() -> None:
    devices = [(None, 'a'), (1, 'c'), (0, 'e'), (1, 'b')]
    nodes = group_by_numa_node(
        (number, build_device(address, ())) for number, address in devices
    )
    listing = [(node.number, [item.address for item in node.devices]) for node in nodes]
    assert listing == [(0, ['e']), (1, ['b', 'c']), (None, ['a'])]


@pytest.mark.parametrize(
    ('board', 'number'),
    [
        ({'numa_node': '1'}, 1),
        ({'numa_node': 0}, 0),
        ({'numa_node': '-1'}, None),
        ({'numa_node': '²'}, None),
        ({'numa_node': '9' * 5000}, None),
        ({'numa_node': ['1']}, None),
        ({}, None),
        (None, None),
    ],
)
def test_read_numa_node_accepts_small_numbers_only(
    board: dict[str, Any] | None, number: int | None
) -> None:
    assert read_numa_node(board) == number


def test_bridges_are_read_as_formatted() -> None:
    chain = tuple(f'0000:{number:02x}:00.0' for number in range(20))
    text = format_bridges(chain)
    assert len(text) <= 255
    assert read_bridges({'pci_bridges': text}) == chain[:16]


@pytest.mark.parametrize(
    'board',
    [None, {}, {'pci_bridges': '<b>'}, {'pci_bridges': ['0000:3b:00.0']}],
)
def test_read_bridges_other_text_is_empty(board: dict[str, Any] | None) -> None:
    assert read_bridges(board) == ()
