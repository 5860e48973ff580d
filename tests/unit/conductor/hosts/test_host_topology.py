# SPDX-License-Identifier: Apache-2.0
"""Tests of the topology of a host as the conductor answers it."""

import pytest

from cyborg_lite.conductor.hosts.host_topology import HostTopologyService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.hosts import HostNotFound
from tests.builders.rows import HOST, add_card


def test_show_returns_devices_of_host(database: Database) -> None:
    add_card(database, 2)
    service = HostTopologyService(database)
    (device,) = service.show(HOST).devices
    assert sum(device.count_units().values()) == 2
    with pytest.raises(HostNotFound):
        service.show('elsewhere')
