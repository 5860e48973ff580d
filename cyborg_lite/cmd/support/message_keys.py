# SPDX-License-Identifier: Apache-2.0
"""Files with the secret of the conductors and with the keys of the other daemons."""

import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oslo_config import cfg
from oslo_log import log

from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.security.keys import (
    Keys,
    OwnKeys,
    Peer,
    Role,
    SecretKeys,
    format_secrets,
    parse_secrets,
)
from cyborg_lite.rpc.security.signing import Signer

LOG = log.getLogger(__name__)

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
    return Signer(own, KeyFile(conf, own), is_required=mode == 'required')


class KeyFile:
    """The keys in the file of a daemon, which is read again when it changes.

    An invalid change is logged; the daemon keeps its keys until the file is valid.
    """

    def __init__(self, conf: cfg.ConfigOpts, own: Peer) -> None:
        """Read the file.

        :raises ConfigurationError: the file is missing or invalid
        """
        self._conf, self._own = conf, own
        self._path = _path(conf, own.role)
        self._version = self._read_version()
        self._keys = _read_keys(conf, own)
        self._fault = ''  # logged

    def list_keys(self, peer: Peer) -> Sequence[bytes]:
        """Return the valid keys of a daemon, the signing one first."""
        version = self._read_version()
        if version != self._version:
            try:
                self._keys = _read_keys(self._conf, self._own)
            except ConfigurationError as error:
                if self._fault != error.text:
                    LOG.error('Keeping the previous message keys: %s', error)
                self._fault = error.text
            else:
                self._version, self._fault = version, ''
                LOG.info('Message keys read again from %s', self._path)
        return self._keys.list_keys(peer)

    def _read_version(self) -> tuple[int, ...]:
        """Return what changes with the file; empty: it cannot be read."""
        try:
            status = self._path.stat()
        except OSError:
            return ()
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size


def read_secrets(conf: cfg.ConfigOpts) -> SecretKeys:
    """Return the secrets of the conductors.

    :raises ConfigurationError: the file is missing or invalid
    """
    path = _path(conf, Role.CONDUCTOR)
    text = _read(path, 'cyborg-lite-manage agent secret')
    keys = parse_secrets(text)
    _check_length(path, keys.secrets)
    return keys


def write_secrets(conf: cfg.ConfigOpts, keys: SecretKeys) -> None:
    """Replace the file of the conductors; its owner and mode stay.

    :raises ConfigurationError: the file cannot be written
    """
    path = _path(conf, Role.CONDUCTOR)
    new = path.with_name(f'.{path.name}.new')
    try:
        owner = path.stat()
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w') as f:
            os.fchmod(f.fileno(), 0o600)
            os.fchown(f.fileno(), owner.st_uid, owner.st_gid)
            f.write(format_secrets(keys))
            f.flush()
            os.fsync(f.fileno())
        new.replace(path)
    except OSError as error:
        raise ConfigurationError(reason=f'Cannot write {path}: {error}.') from None


def generate_secret() -> str:
    """Return a random secret."""
    return secrets.token_hex(32)


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
        file.write(f'{generate_secret()}\n')
    return True


def _read_keys(conf: cfg.ConfigOpts, own: Peer) -> Keys:
    if own.role is Role.CONDUCTOR:
        return read_secrets(conf)
    name = 'api-key' if own.role is Role.API else f'key {own.host}'
    command = f'cyborg-lite-manage agent {name}'
    path = _path(conf, own.role)
    keys = tuple(_read(path, command).split('\n'))
    _check_length(path, keys)
    return OwnKeys(own, keys)


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
    if not text:
        raise ConfigurationError(reason=f'The key file {path} is empty; {remedy}.')
    return text


def _check_length(path: Path, keys: Sequence[str]) -> None:
    if not keys or min(map(len, keys)) < _SHORTEST:
        reason = f'The key file {path} has a key of less than {_SHORTEST} characters.'
        raise ConfigurationError(reason=reason)
