# SPDX-License-Identifier: Apache-2.0
"""Files with the secret of the conductors and with the keys of the other daemons."""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.security.keys import Keys, OwnKey, Peer, Role, SecretKeys
from cyborg_lite.rpc.security.signing import Signer

_SHORTEST: Final = 32  # characters of a secret or key
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_LOCAL: Final = 'local:'


def create_signer(conf: cfg.ConfigOpts, role: Role) -> Signer | None:
    """Return the signer of a daemon; None: its messages are not signed.

    :raises ConfigurationError: signatures are required, and the key file is missing or
        invalid
    """
    mode = conf.message_signatures
    # Messages of this transport stay in one process.
    if mode == 'off' or transport.address(conf).startswith(_LOCAL):
        return None
    if mode == 'optional' and not _path(conf, role).exists():
        return None
    own = Peer(role, '' if role is Role.API else conf.host)
    return Signer(own, _read_keys(conf, own), is_required=mode == 'required')


def read_secret(conf: cfg.ConfigOpts) -> str:
    """Return the secret of the conductors.

    :raises ConfigurationError: the file is missing or invalid
    """
    return _read(_path(conf, Role.CONDUCTOR), 'cyborg-lite-manage agent secret')


def create_secret(conf: cfg.ConfigOpts) -> bool:
    """Create the file with the secret; return False if it exists.

    :raises ConfigurationError: the file cannot be written
    """
    path = _path(conf, Role.CONDUCTOR)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        return False
    except OSError as error:
        raise ConfigurationError(reason=f'Cannot create {path}: {error}.') from None
    with open(descriptor, 'w') as file:
        file.write(f'{secrets.token_hex(32)}\n')
    return True


def _read_keys(conf: cfg.ConfigOpts, own: Peer) -> Keys:
    if own.role is Role.CONDUCTOR:
        return SecretKeys(read_secret(conf))
    name = 'api-key' if own.role is Role.API else f'key {own.host}'
    command = f'cyborg-lite-manage agent {name}'
    return OwnKey(own, _read(_path(conf, own.role), command))


def _path(conf: cfg.ConfigOpts, role: Role) -> Path:
    paths = {
        Role.AGENT: conf.agent.key_file,
        Role.API: conf.api.key_file,
        Role.CONDUCTOR: conf.conductor.agent_key_secret_file,
    }
    return Path(paths[role])


def _read(path: Path, command: str) -> str:
    """Return the content of a file to which only its owner has access.

    :param command: creates or prints the content
    :raises ConfigurationError: the file is missing or invalid
    """
    remedy = f'`{command}` on a controller gives its content'
    try:
        mode = path.stat().st_mode
        text = path.read_text().strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, 'strerror', None) or 'it is no text'
        raise ConfigurationError(
            reason=f'Cannot read the key file {path}: {reason}; {remedy}.'
        ) from None
    if mode & _OTHERS:
        reason = f'The key file {path} must have mode 0600.'
        raise ConfigurationError(reason=reason)
    if len(text) < _SHORTEST:
        reason = f'The key file {path} has less than {_SHORTEST} characters; {remedy}.'
        raise ConfigurationError(reason=reason)
    return text
