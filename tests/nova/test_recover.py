# SPDX-License-Identifier: Apache-2.0
"""Servers whose ARQs were rebuilt in a restored database, through a real Nova."""

from contextlib import closing
from typing import Any

from cyborg_lite.db.core.engine import Database
from tests.builders.database_backups import back_up, restore
from tests.servers.openstack import OpenStack, Server


def show(server: Server) -> list[tuple[Any, ...]]:
    """Return what Nova needs of each ARQ."""
    return [
        (arq['state'], arq['attach_handle_uuid'], arq['device_rp_uuid'])
        for arq in server.arqs()
    ]


def check_life(cloud: OpenStack, server: Server) -> None:
    """Reboot, shelve, unshelve and delete a server."""
    before = show(server)
    server.act('reboot', {'type': 'HARD'})
    server.wait_idle('ACTIVE')
    assert show(server) == before
    server.act('shelve')
    server.wait_for('SHELVED_OFFLOADED')
    cloud.until(lambda: not server.arqs(), 'the ARQs are gone')
    server.act('unshelve')
    assert server.wait_built() == 'ACTIVE', server.fault()
    assert [row[0] for row in show(server)] == ['Bound']
    server.delete()
    assert server.arqs() == []


def test_recovered_servers_reboot_shelve_and_end(cloud: OpenStack) -> None:
    profiles = cloud.create_profile(PGPU=1), cloud.create_profile(VGPU=1)
    flavors = [cloud.create_flavor(profile) for profile in profiles]
    former = cloud.boot(profiles[0], host='cmp1')
    with closing(Database(cloud.connection)) as database:
        backup = back_up(database)
        former.delete()
        cloud.until(lambda: not former.arqs(), 'the ARQs are gone')
        servers = [
            cloud.create_server(flavor, host)
            for flavor, host in zip(flavors, ('cmp1', 'cmp2'), strict=True)
        ]
        for server in servers:
            assert server.wait_built() == 'ACTIVE', server.fault()
        before = [show(server) for server in servers]
        cloud.kill('conductor')
        restore(database, backup)
    cloud.start_cyborg('conductor', 'conductor')
    output = cloud.manage('recover', '--apply')
    assert output.count('rebuild') == len(servers), output
    cloud.until(
        lambda: [show(server) for server in servers] == before, 'the ARQs are back'
    )
    assert former.arqs() == []
    for server in servers:
        check_life(cloud, server)
