# SPDX-License-Identifier: Apache-2.0
"""Tests of the files with the secret and with the keys of the daemons."""

from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.support import message_keys
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.rpc.security.keys import Peer, Role
from tests.servers.message_keys import write_lines

Configure = Callable[..., cfg.ConfigOpts]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def _configure(lines: str = '') -> cfg.ConfigOpts:
        file = tmp_path / 'cyborg-lite.conf'
        bus = '[DEFAULT]\nhost = compute-1\ntransport_url = rabbit://broker/\n'
        file.write_text(f'{bus}{write_lines(tmp_path, "compute-1")}{lines}')
        return configuration.parse([], 'prog', [str(file)])

    return _configure


@pytest.mark.parametrize('role', Role)
def test_daemon_with_key_signs_and_requires_signatures(
    configure: Configure, role: Role
) -> None:
    signer = message_keys.create_signer(configure(), role)
    assert signer is not None
    assert signer.is_required


@pytest.mark.parametrize(
    ('role', 'command'),
    [
        (Role.AGENT, 'cyborg-lite-manage agent key compute-1'),
        (Role.API, 'cyborg-lite-manage agent api-key'),
        (Role.CONDUCTOR, 'cyborg-lite-manage agent secret'),
    ],
)
def test_daemon_without_key_refuses_to_start(
    configure: Configure, tmp_path: Path, role: Role, command: str
) -> None:
    conf = configure()
    for file in (*tmp_path.glob('*.key'), tmp_path / 'agent-key-secret'):
        file.unlink()
    with pytest.raises(ConfigurationError) as caught:
        message_keys.create_signer(conf, role)
    assert f'`{command}`' in caught.value.text
    assert '\n' not in caught.value.text


@pytest.mark.parametrize('text', ['', 'short', '\udcff'])
def test_invalid_key_is_refused(
    configure: Configure, tmp_path: Path, text: str
) -> None:
    conf = configure()
    content = text.encode(errors='surrogateescape')
    (tmp_path / 'agent-compute-1.key').write_bytes(content)
    with pytest.raises(ConfigurationError):
        message_keys.create_signer(conf, Role.AGENT)


def test_key_that_others_can_read_is_refused(
    configure: Configure, tmp_path: Path
) -> None:
    conf = configure()
    (tmp_path / 'agent-compute-1.key').chmod(0o640)
    with pytest.raises(ConfigurationError, match='must have mode 0600'):
        message_keys.create_signer(conf, Role.AGENT)


def test_optional_signatures_need_no_key(configure: Configure, tmp_path: Path) -> None:
    conf = configure('[DEFAULT]\nmessage_signatures = optional\n')
    signer = message_keys.create_signer(conf, Role.AGENT)
    assert signer is not None
    assert not signer.is_required
    (tmp_path / 'agent-compute-1.key').unlink()
    assert message_keys.create_signer(conf, Role.AGENT) is None


@pytest.mark.parametrize(
    'line', ['message_signatures = off', 'transport_url = local://']
)
def test_unsigned_only_by_option_or_within_process(
    configure: Configure, line: str
) -> None:
    conf = configure(f'[DEFAULT]\n{line}\n')
    assert message_keys.create_signer(conf, Role.CONDUCTOR) is None


def test_invalid_change_of_file_keeps_keys(
    configure: Configure, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own, path = Peer(Role.AGENT, 'compute-1'), tmp_path / 'agent-compute-1.key'
    keys = message_keys.KeyFile(configure(), own)
    before, text = keys.list_keys(own), path.read_text()
    path.unlink()
    assert keys.list_keys(own) == keys.list_keys(own) == before
    assert caplog.text.count('Keeping the previous message keys') == 1
    path.write_text(f'{"n" * 64}\n{text}')
    path.chmod(0o600)
    assert keys.list_keys(own) == [b'n' * 64, *before]
