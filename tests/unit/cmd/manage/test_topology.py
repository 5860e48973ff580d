# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage topology``."""

import json
from collections.abc import Callable

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from tests.builders.rows import HOST, add_card

Out = pytest.CaptureFixture[str]


@pytest.fixture
def options(write_config: Callable[..., list[str]], database: Database) -> list[str]:
    add_card(database, 2)
    return [*write_config(), 'topology']


def test_topology_default_is_tree(options: list[str], capsys: Out) -> None:
    assert main.main([*options, HOST]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f'{HOST}  agent not registered  2 units: 2 free\n')


def test_topology_svg_is_picture(options: list[str], capsys: Out) -> None:
    assert main.main([*options, HOST, '--format', 'svg']) == 0
    out = capsys.readouterr().out
    assert (out.startswith('<svg '), HOST in out) == (True, True)


def test_topology_json_has_units(options: list[str], capsys: Out) -> None:
    assert main.main([*options, HOST, '--format', 'json']) == 0
    (node,) = json.loads(capsys.readouterr().out)['numa_nodes']
    ((deployable,),) = [device['deployables'] for device in node['devices']]
    assert len(deployable['units']) == 2


def test_topology_unknown_host_fails(options: list[str], capsys: Out) -> None:
    assert main.main([*options, 'elsewhere']) == 2
    assert 'Host elsewhere not found' in capsys.readouterr().err
