# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-controller: API and conductor in one process.

The API calls the conductor of its process over a transport inside the process. Agents,
and API processes elsewhere, use the configured message bus.
"""

from cyborg_lite import runtime  # isort: skip  # must be imported first: it may monkey-patch

import sys
from collections.abc import Sequence
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import api, conductor
from cyborg_lite.cmd.daemons.api_application import RPC_TIMEOUT
from cyborg_lite.cmd.runner import daemon
from cyborg_lite.cmd.runner.daemon_group import DaemonGroup
from cyborg_lite.rpc import transport

__all__ = ['build', 'main', 'runtime']

BINARY: Final = 'cyborg-lite-controller'
_DESCRIPTION: Final = (
    'API and conductor of cyborg_lite in one process. The API calls the conductor '
    'without the message bus. Any number may run, also beside the separate daemons. '
    '[api] workers is the number of processes, and [conductor] workers is ignored.'
)
_OWN_TRANSPORT: Final = 'local:///controller'


def main(arguments: Sequence[str] | None = None) -> int:
    """Run API and conductor until SIGTERM; return the exit status."""
    conf = configuration.parse(arguments, BINARY, description=_DESCRIPTION)
    # Each process has both parts. The number decides how many metrics ports there are.
    conf.set_override('workers', conf.api.workers, 'conductor')
    identity = daemon.Identity(BINARY, opens_database=True, workers=conf.api.workers)
    return daemon.run(conf, identity, build)


def build(conf: cfg.ConfigOpts) -> DaemonGroup:
    """Build API and conductor from the configuration, without starting them.

    :raises ConfigurationError: as the build of the conductor
    """
    # The order of the shutdown is the reverse: the API answers its last requests first.
    return DaemonGroup(
        [
            conductor.build(conf, own_api=_connect(conf)),
            api.build(conf, connect=_connect),
        ]
    )


def _connect(conf: cfg.ConfigOpts) -> transport.Transport:
    """Return a transport inside this process, whose messages need no signatures."""
    return transport.connect(conf, RPC_TIMEOUT, url=_OWN_TRANSPORT)


if __name__ == '__main__':
    sys.exit(main())
