# SPDX-License-Identifier: Apache-2.0
"""Operations that Nova refuses for servers with accelerators.

The page of limits lists them and says what to do instead.
"""

from typing import Any

from tests.servers.openstack import OpenStack, Server

TEXT = 'Feature not supported with instances that have accelerators'


def refusal(server: Server, action: str, body: Any) -> tuple[int, str]:
    """Return status and text of the answer to an action."""
    path = f'/servers/{server.uuid}/action'
    answer = server.cloud.ask('compute', 'POST', path, {action: body})
    return answer.status_code, answer.text


def test_refused_operations(cloud: OpenStack) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1), 'cmp1')
    plain = cloud.boot(None, 'cmp1')
    to_plain = {'flavorRef': cloud.create_flavor(None)}
    to_accelerated = {'flavorRef': cloud.create_flavor(cloud.create_profile(PGPU=1))}
    live = {'host': None, 'block_migration': 'auto'}
    refusals = {
        'resize': refusal(server, 'resize', to_plain),
        'resize to accelerators': refusal(plain, 'resize', to_accelerated),
        'cold migration': refusal(server, 'migrate', None),
        'live migration': refusal(server, 'os-migrateLive', live),
        'suspend': refusal(server, 'suspend', None),
    }
    for operation, (status, text) in refusals.items():
        assert (operation, status) == (operation, 400)
        assert TEXT in text
    assert server.show()['status'] == 'ACTIVE'
    assert [arq['state'] for arq in server.arqs()] == ['Bound']


def test_shelve_instead_of_migration_moves_to_other_host(cloud: OpenStack) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1), 'cmp1')
    cloud.accept_servers('cmp1', False)
    try:
        server.act('shelve')
        server.wait_for('SHELVED_OFFLOADED')
        server.act('unshelve')
        assert server.wait_built() == 'ACTIVE', server.fault()
    finally:
        cloud.accept_servers('cmp1')
    host = server.host()
    assert host != 'cmp1'
    (arq,) = server.arqs()
    assert (arq['state'], arq['hostname']) == ('Bound', host)
