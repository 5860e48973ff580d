# SPDX-License-Identifier: Apache-2.0
"""Tests of the picture of a host from the JSON of the API."""

import copy
import json
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from cyborg_lite_dashboard.admin.accelerator_devices.views import list_units
from cyborg_lite_dashboard.topology import build_topology, draw_topology

_SAMPLES: Final = Path(__file__).parents[2] / 'cyborg_lite/api/openapi/samples'
_SAMPLE: Final = _SAMPLES / 'show_host_topology.json'


def read_sample() -> Any:
    """Return the recorded response of the API."""
    return json.loads(_SAMPLE.read_text())['answer']['body']


def test_topology_has_devices_and_users_of_response() -> None:
    answer = read_sample()
    topology = build_topology(answer)
    assert topology.hostname == answer['hostname']
    sample_devices = [d for node in answer['numa_nodes'] for d in node['devices']]
    assert [device.uuid for device in topology.devices] == [
        device['uuid'] for device in sample_devices
    ]
    users = [
        unit.user.arq_uuid
        for device in topology.devices
        for item in device.deployables
        for unit in item.units
        if unit.user
    ]
    assert users == ['00000012-0000-4000-8000-000000000012']


def test_picture_escapes_markup_of_response() -> None:
    answer = copy.deepcopy(read_sample())
    device = answer['numa_nodes'][0]['devices'][0]
    device['model'] = '<script>alert(1)</script>'
    device['deployables'][0]['units'][0]['name'] = '"><image href="x"/>'
    text = draw_topology(answer)
    names = {
        element.tag.rpartition('}')[2]
        for element in ElementTree.fromstring(text).iter()
    }
    assert names <= {'svg', 'title', 'rect', 'path', 'g', 'text', 'circle'}
    assert '&lt;script&gt;' in text


def test_units_without_users_are_listed_for_managers() -> None:
    answer = read_sample()
    device = answer['numa_nodes'][0]['devices'][0]
    for unit in device['deployables'][0]['units']:
        del unit['user']
    units = list(list_units(answer, device['uuid']))
    assert len(units) == len(device['deployables'][0]['units'])
    assert {unit['instance'] for unit in units} == {None}
    assert draw_topology(answer).startswith('<svg')
