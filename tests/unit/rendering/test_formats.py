# SPDX-License-Identifier: Apache-2.0
"""Tests of the list of formats."""

import json

from cyborg_lite.rendering.formats import FORMATS
from cyborg_lite.rpc import wire
from tests.builders.host_topologies import build_topology


def test_formats_each_names_host() -> None:
    assert list(FORMATS) == ['tree', 'svg', 'dot', 'html', 'json']
    for render in FORMATS.values():
        assert 'compute-1' in render(build_topology())


def test_json_has_all_fields() -> None:
    topology = build_topology()
    assert json.loads(FORMATS['json'](topology)) == wire.dump(topology)
