# SPDX-License-Identifier: Apache-2.0
"""Message keys of the daemons that the tests start."""

from pathlib import Path
from typing import Final

from cyborg_lite.rpc.security.keys import Peer, Role, derive_key

SECRET: Final = 'secret of the conductors in the tests'


def write_keys(directory: Path, host: str) -> dict[str, dict[str, object]]:
    """Write the key files of all daemons of a host; return the options that name them.

    :param host: ``[DEFAULT] host`` of the daemons
    """
    peers = Peer(Role.AGENT, host), Peer(Role.API)
    agent, api = (derive_key(SECRET, peer) for peer in peers)
    return {
        'conductor': {
            'agent_key_secret_file': _write(directory / 'agent-key-secret', SECRET)
        },
        'agent': {'key_file': _write(directory / f'agent-{host}.key', agent)},
        'api': {'key_file': _write(directory / 'api.key', api)},
    }


def write_lines(directory: Path, host: str) -> str:
    """Write the key files; return the options as lines of a configuration file."""
    return ''.join(
        f'[{section}]\n'
        + ''.join(f'{name} = {value}\n' for name, value in lines.items())
        for section, lines in write_keys(directory, host).items()
    )


def _write(path: Path, text: str) -> Path:
    # A daemon that starts at the same time never reads a part of the file.
    if not path.exists():
        part = path.with_suffix('.part')
        part.touch(0o600)
        part.write_text(text)
        part.rename(path)
    return path
