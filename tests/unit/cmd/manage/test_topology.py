# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage topology``."""

import json

import pytest

from cyborg_lite.db.core.engine import Database
from tests.builders.rows import HOST, add_card
from tests.unit.cmd.manage.conftest import Manage


@pytest.fixture(autouse=True)
def _card(database: Database) -> None:
    add_card(database, 2)


def test_topology_default_is_tree(manage: Manage) -> None:
    status, out, _ = manage('topology', HOST)
    assert status == 0
    assert out.startswith(f'{HOST}  agent not registered  2 units: 2 free\n')


def test_topology_svg_is_picture(manage: Manage) -> None:
    status, out, _ = manage('topology', HOST, '--format', 'svg')
    assert (status, out.startswith('<svg '), HOST in out) == (0, True, True)


def test_topology_json_has_units(manage: Manage) -> None:
    (node,) = json.loads(manage('topology', HOST, '--json')[1])['numa_nodes']
    ((deployable,),) = [device['deployables'] for device in node['devices']]
    assert len(deployable['units']) == 2


def test_topology_unknown_host_fails(manage: Manage) -> None:
    status, _, errors = manage('topology', 'elsewhere')
    assert status == 2
    assert 'Host elsewhere not found' in errors
