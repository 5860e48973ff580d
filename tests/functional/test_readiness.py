# SPDX-License-Identifier: Apache-2.0
"""A daemon says that it is ready only if it can serve, and says else why it is not.

Each test has a virtual host of its own, because the conductors of two clouds would
share one queue.
"""

import platform
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cyborg_lite.rpc.security.keys import Peer, Role, derive_key
from devstack.launcher.processes import Child
from tests.servers import rabbitmq
from tests.servers.http_proxy import HttpProxy
from tests.servers.keystone import PASSWORD, RealKeystone, keystone
from tests.servers.message_keys import write_keys
from tests.servers.stack import ADMIN, Cloud, lines_of

__all__ = ['keystone']


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    connection = f'sqlite:///{tmp_path}/service.sqlite'
    with (
        rabbitmq.virtual_host() as bus,
        Cloud(tmp_path, transport_url=bus, connection=connection) as created,
    ):
        created.migrate()
        yield created


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    """Yield the socket of systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / 'notify'))
        yield receiver


def status(cloud: Cloud) -> str:
    """Return the output of ``cyborg-lite-status``."""
    return cloud.run('status')[1]


def wait_until_ready(cloud: Cloud, child: Child) -> None:
    cloud.until(lambda: lines_of(child, 'Ready.'), f'{child.log} says Ready')


def test_agent_with_wrong_key_is_not_ready(cloud: Cloud, tmp_path: Path) -> None:
    conductor = cloud.start('conductor')
    key_of_host = Path(str(write_keys(tmp_path, cloud.host)['agent']['key_file']))
    key = tmp_path / 'wrong.key'
    key.touch(0o600)
    key.write_text(derive_key('s' * 32, Peer(Role.AGENT, cloud.host)))
    agent = cloud.begin('agent', 'agent', [], {'agent': {'key_file': key}})
    refused = f'wrong signature, from agent:{cloud.host}'
    [line] = cloud.until(lambda: lines_of(agent, refused))
    assert 'Not ready: ' in line
    assert lines_of(conductor, f'Refusing messages of agent:{cloud.host}')
    cloud.until(lambda: f'not_ready on host {cloud.host}' in status(cloud))
    assert 'Its messages are refused: wrong signature.' in status(cloud)
    assert not lines_of(agent, 'Ready.')
    key.write_text(key_of_host.read_text())
    wait_until_ready(cloud, agent)
    assert cloud.provider_of('FPGA')


def test_api_with_wrong_key_is_not_ready(cloud: Cloud, tmp_path: Path) -> None:
    cloud.start('conductor')
    right_key = Path(str(write_keys(tmp_path, cloud.host)['api']['key_file']))
    key = tmp_path / 'wrong.key'
    key.touch(0o600)
    key.write_text(derive_key('s' * 32, Peer(Role.API, cloud.host)))
    api = cloud.begin('api', 'api', [], {'api': {'key_file': key}})
    [line] = cloud.until(lambda: lines_of(api, 'Not ready: '))
    assert 'wrong signature, from api:' in line
    assert not lines_of(api, 'Ready.')
    key.write_text(right_key.read_text())
    wait_until_ready(cloud, api)
    assert cloud.api().ask('GET', '/v2/devices').status == 200


def test_agent_with_copied_state_is_not_ready(cloud: Cloud) -> None:
    cloud.start('conductor')
    first = cloud.start('agent')
    cloud.until(lambda: lines_of(first, 'Reported '))
    copy = cloud.directory / 'copy'
    shutil.copytree(cloud.directory / 'agent', copy)
    twin = cloud.begin('twin', 'agent', [], {'agent': {'state_path': copy}})
    # It may be ready until the first agent sends its next heartbeat.
    cloud.until(lambda: lines_of(twin, 'has another agent'))
    assert cloud.until(lambda: lines_of(first, 'is refused'))
    assert 'Not ready: ' in lines_of(twin, 'eady')[-1]


def test_agent_of_same_name_is_not_ready(
    cloud: Cloud,
) -> None:
    cloud.configure(_queue_manager(cloud.directory))
    cloud.start('conductor')
    first = cloud.start('agent')
    cloud.until(lambda: lines_of(first, 'Reported '))
    state = {'agent': {'state_path': cloud.directory / 'twin'}}
    twin = cloud.begin('twin', 'agent', [], state)
    refused = 'Not ready: Host .* has another agent, which is running'
    cloud.until(lambda: lines_of(twin, refused.replace('.*', cloud.host)))
    assert not lines_of(twin, 'Reported ')
    assert not lines_of(twin, 'Ready.')
    [line] = cloud.until(lambda: lines_of(first, 'is refused'))
    reason = line[line.index('Two agents have the name') :]
    states = [cloud.directory / name / 'identity.json' for name in ('agent', 'twin')]
    identities = [re.search('[0-9a-f]{8}(?=-)', file.read_text()) for file in states]
    assert all(match and f'({match[0]})' in reason for match in identities)
    assert reason.count(platform.node()) == 2
    assert f'duplicate_agent on host {cloud.host}' in status(cloud)
    assert reason in status(cloud)
    first.kill()
    assert cloud.run('manage', 'agent', 'forget-identity', cloud.host)[0] == 0
    cloud.until(lambda: lines_of(twin, 'Reported '))
    wait_until_ready(cloud, twin)


def test_host_of_stopped_agent_is_forgotten_at_once(cloud: Cloud) -> None:
    cloud.start('conductor')
    cloud.start('api')
    api = cloud.api({**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'})
    agent = cloud.start('agent')
    cloud.provider_of('FPGA')
    path = f'/v2/hosts/{cloud.host}'
    agent.kill()
    assert api.ask('DELETE', path).status == 409
    agent = cloud.restart(agent, 'agent')
    cloud.until(lambda: lines_of(agent, 'Reported '))
    agent.end()
    assert api.ask('GET', path).body['agent_state'] == 'stopped'
    assert api.ask('DELETE', path).status in (202, 204)


def test_conductor_without_placement_works_but_is_not_ready(
    cloud: Cloud, systemd: socket.socket
) -> None:
    fates = ['lost']
    with HttpProxy(cloud.placement.endpoint, lambda _: fates[-1]) as proxy:
        cloud.configure({'placement': {'endpoint_override': proxy.url}})
        environment = {'NOTIFY_SOCKET': str(systemd.getsockname())}
        conductor = cloud.begin('conductor', 'conductor', environment=environment)
        text = systemd.recv(1000).decode()
        assert text.startswith(
            'STATUS=Not ready: The service is unavailable: Placement'
        )
        # Neither an agent nor an API waits for the conductor to be ready.
        agent = cloud.start('agent')
        cloud.start('api')
        cloud.until(lambda: lines_of(agent, 'Reported '))
        assert cloud.api().ask('GET', '/v2/devices').status == 200
        cloud.until(lambda: 'not ready' in status(cloud).splitlines()[-4:][0])
        assert not lines_of(conductor, 'Ready.')
        number = len(proxy.requests)
        cloud.until(lambda: len(proxy.requests) > number + 1, 'it asks again')
        assert len(lines_of(conductor, 'Placement does not answer: ')) == 1
        fates.append('passed')
        assert systemd.recv(1000) == b'READY=1\nSTATUS=Ready.'
        assert lines_of(conductor, 'Placement answers again')
        assert cloud.provider_of('FPGA')
        cloud.until(lambda: 'not_ready' not in status(cloud))
        conductor.end()


def test_conductor_without_keystone_is_not_ready(
    cloud: Cloud, keystone: RealKeystone
) -> None:
    project = keystone.project('readiness')
    user = keystone.person('placement-of-readiness', project, 'service').user
    fates = ['503']
    with ExitStack() as stack:
        address = keystone.url.removesuffix('/v3')
        front = HttpProxy(address, lambda _: fates[-1])
        target = cloud.placement.endpoint
        placement = HttpProxy(target, lambda _: 'passed', token='admin')
        stack.enter_context(front)
        stack.enter_context(placement)
        section: dict[str, object] = {
            'endpoint_override': placement.url,
            'auth_type': 'password',
            'auth_url': f'{front.url}/v3',
            'username': user,
            'password': PASSWORD,
            'user_domain_id': 'default',
            'project_id': project,
        }
        conductor = cloud.begin('conductor', 'conductor', [], {'placement': section})
        cloud.until(lambda: lines_of(conductor, 'Not ready: '))
        assert lines_of(conductor, 'Keystone does not answer')
        assert not lines_of(conductor, 'Ready.')
        fates.append('passed')
        wait_until_ready(cloud, conductor)
        conductor.end()


def test_api_without_lock_files_is_not_ready(cloud: Cloud, tmp_path: Path) -> None:
    file = tmp_path / 'file'
    file.touch()
    cloud.start('conductor')
    api = cloud.begin('api', 'api', [], _queue_manager(file / 'locks'))
    [line] = cloud.until(lambda: lines_of(api, 'Not ready: '))
    assert '[oslo_concurrency] lock_path: the daemon cannot create files' in line
    health = cloud.until(lambda: _ask_health(cloud))
    assert health == 503
    assert not lines_of(api, 'Ready.')
    file.unlink()
    wait_until_ready(cloud, api)
    cloud.until(lambda: _ask_health(cloud) == 200)
    assert cloud.api().ask('GET', '/v2/devices').status == 200


def _queue_manager(locks: Path) -> dict[str, dict[str, object]]:
    """Return options with which reply queues have the names of daemons."""
    return {
        'oslo_messaging_rabbit': {'use_queue_manager': True},
        'oslo_concurrency': {'lock_path': locks},
    }


def _ask_health(cloud: Cloud) -> int:
    return cloud.api().ask('GET', '/healthcheck/ready').status
