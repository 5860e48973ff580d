# SPDX-License-Identifier: Apache-2.0
"""Tests of the topology of a host in responses."""

from typing import Any

import pytest

from cyborg_lite.api.views.hosts import HostTopologyView
from cyborg_lite.model.hosts.topology import (
    Availability,
    HostTopology,
    NumaNode,
    TopologyDeployable,
    TopologyDevice,
    TopologyUnit,
    UnitUser,
)
from cyborg_lite.model.inventory.host_report import Health
from tests.builders.api_calls import render

UNIT = TopologyUnit(
    '0000:3b:00.0', 'PCI', Availability.USED, user=UnitUser('a', 'Bound', 'gpu')
)
DEPLOYABLE = TopologyDeployable('d', 'root', None, 'PGPU', total=1, units=(UNIT,))
DEVICE = TopologyDevice(
    uuid='u',
    address='0000:3b:00.0',
    type='GPU',
    vendor='10de',
    model='T4',
    driver='NVIDIA',
    status='enabled',
    status_reason='',
    health=Health.OK,
    health_reason='',
    deployables=(DEPLOYABLE,),
    pci_bridges=('0000:3a:00.0',),
)
TOPOLOGY = HostTopology('rack 1/host', None, (NumaNode(None, (DEVICE,)),))


# Any: parsed JSON.
def render_unit(body: Any) -> Any:
    """Return the only unit in a response."""
    return body['numa_nodes'][0]['devices'][0]['deployables'][0]['units'][0]


def test_topology_view_quotes_name_of_host() -> None:
    body = render(HostTopologyView(TOPOLOGY))
    assert (body['hostname'], body['agent_state']) == ('rack 1/host', None)
    assert body['links'][0]['href'] == 'http://api/v2/hosts/rack%201%2Fhost/topology'
    assert body['numa_nodes'][0]['number'] is None


@pytest.mark.parametrize('is_admin', [True, False])
def test_topology_view_has_users_for_administrators_only(is_admin: bool) -> None:
    unit = render_unit(render(HostTopologyView(TOPOLOGY), is_admin=is_admin))
    assert unit['availability'] == 'used'
    assert ('user' in unit) is is_admin


def test_topology_view_has_bridges() -> None:
    body = render(HostTopologyView(TOPOLOGY))
    assert body['numa_nodes'][0]['devices'][0]['pci_bridges'] == ['0000:3a:00.0']
