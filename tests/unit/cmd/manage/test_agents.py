# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage agent``."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.manage import main
from cyborg_lite.cmd.support import message_keys
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import agents
from cyborg_lite.errors.daemons import MessageRefused
from cyborg_lite.model.hosts.services import HeartbeatDetails
from cyborg_lite.rpc.security.keys import Peer, Role
from cyborg_lite.rpc.security.signing import KEY, Signer
from tests.builders.reports import HOST
from tests.servers.message_keys import write_lines

Out = pytest.CaptureFixture[str]


def test_forget_identity_lets_next_agent_replace(
    write_config: Callable[..., list[str]], database: Database, capsys: Out
) -> None:
    details = HeartbeatDetails('boot', identity='identity-1')
    database.write(services.record_agent_heartbeat, HOST, '1', '', details)
    command = [*write_config(), 'agent', 'forget-identity', HOST]
    assert main.main(command) == 0
    agent = database.read(agents.find_agent, HOST)
    assert agent is not None
    assert agent.identity is None
    assert main.main(command) == 1
    assert f'Host {HOST} has no agent with an identity.' in capsys.readouterr().out


def test_agent_key_prints_key_of_host(
    write_config: Callable[..., list[str]], tmp_path: Path, capsys: Out
) -> None:
    options = write_config(write_lines(tmp_path, HOST))
    for command, name in (
        (['key', HOST], f'agent-{HOST}.key'),
        (['api-key'], 'api.key'),
    ):
        assert main.main([*options, 'agent', *command]) == 0
        assert capsys.readouterr().out.strip() == (tmp_path / name).read_text()


def test_agent_secret_creates_file_once(
    write_config: Callable[..., list[str]], tmp_path: Path, capsys: Out
) -> None:
    path = tmp_path / 'secret'
    options = write_config(f'[conductor]\nagent_key_secret_file = {path}\n')
    assert main.main([*options, 'agent', 'key', HOST]) == 2
    assert '`cyborg-lite-manage agent secret`' in capsys.readouterr().err
    for expected in ('Created', 'exists'):
        assert main.main([*options, 'agent', 'secret']) == 0
        assert expected in capsys.readouterr().out
        assert (len(path.read_text().strip()), path.stat().st_mode & 0o777) == (
            64,
            0o600,
        )


class Deployment:
    """The signers of running daemons, and the commands of their operator."""

    def __init__(self, options: list[str], directory: Path, capsys: Out) -> None:
        self.options, self.directory, self.capsys = options, directory, capsys
        files = [value for value in options if value.endswith('.conf')]
        conf = configuration.parse([], 'prog', files)
        self.conductor, self.agent, self.api = (
            message_keys.create_signer(conf, role)
            for role in (Role.CONDUCTOR, Role.AGENT, Role.API)
        )

    def run(self, *command: str) -> str:
        assert main.main([*self.options, 'agent', *command]) == 0
        return self.capsys.readouterr().out

    def install_key(self, *command: str, name: str = f'agent-{HOST}.key') -> None:
        (self.directory / name).write_text(self.run(*command))

    def is_accepted(self, sender: Signer | None, receiver: Signer | None) -> bool:
        assert sender is not None
        assert receiver is not None
        role = Role.CONDUCTOR if receiver is self.conductor else Role.AGENT
        peer = Peer(role, HOST if role is Role.AGENT else '')
        request = sender.sign(peer, 'echo', {}, {}, {})
        try:
            receiver.verify('echo', {KEY: request.proof}, {})
        except MessageRefused:
            return False
        return True

    def is_connected(self) -> bool:
        pairs = (
            (self.agent, self.conductor),
            (self.conductor, self.agent),
            (self.api, self.conductor),
            (self.conductor, self.conductor),
        )
        return all(self.is_accepted(*pair) for pair in pairs)


@pytest.fixture
def deployment(
    write_config: Callable[..., list[str]], tmp_path: Path, capsys: Out
) -> Deployment:
    bus = f'[DEFAULT]\nhost = {HOST}\ntransport_url = rabbit://broker/\n'
    options = write_config(f'{bus}{write_lines(tmp_path, HOST)}')
    for path in (*tmp_path.glob('*.key'), tmp_path / 'agent-key-secret'):
        path.chmod(0o600)
    return Deployment(options, tmp_path, capsys)


def test_secret_is_replaced_under_running_daemons(deployment: Deployment) -> None:
    former = deployment.run('key', HOST)
    conductor = deployment.conductor
    assert conductor is not None
    for change in (
        lambda: None,
        lambda: deployment.run('add-secret'),
        lambda: deployment.install_key('key', HOST),
        lambda: deployment.install_key('api-key', name='api.key'),
    ):
        change()
        assert deployment.is_connected()
    deployment.run('drop-secret')
    assert deployment.is_connected()
    (deployment.directory / f'agent-{HOST}.key').write_text(former)
    assert not deployment.is_accepted(deployment.agent, conductor)


def test_senders_with_old_key_are_logged_once(
    deployment: Deployment, caplog: pytest.LogCaptureFixture
) -> None:
    deployment.run('add-secret')
    for _ in range(2):
        assert deployment.is_connected()
    lines = [text for text in caplog.messages if 'have an old key' in text]
    assert [line.split()[2] for line in lines] == [f'agent:{HOST}', 'api:']


def test_revoked_key_is_refused_until_replaced(deployment: Deployment) -> None:
    deployment.run('revoke-key', HOST)
    assert not deployment.is_accepted(deployment.agent, deployment.conductor)
    assert not deployment.is_accepted(deployment.conductor, deployment.agent)
    assert deployment.is_accepted(deployment.api, deployment.conductor)
    deployment.install_key('key', HOST)
    assert deployment.is_connected()
    assert (deployment.directory / 'agent-key-secret').stat().st_mode & 0o777 == 0o600


def test_third_or_no_secret_is_refused(deployment: Deployment, capsys: Out) -> None:
    assert main.main([*deployment.options, 'agent', 'drop-secret']) == 1
    deployment.run('add-secret')
    assert main.main([*deployment.options, 'agent', 'add-secret']) == 1
    assert '`drop-secret`' in capsys.readouterr().out
