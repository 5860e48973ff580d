# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-standalone: API, conductor and agent in one process.

By default, messages stay inside the process and every caller is an administrator. For
that reason the API listens on a loopback address only.
"""

from cyborg_lite import runtime  # isort: skip  # must be imported first: it may monkey-patch

import ipaddress
import sys
from collections.abc import Sequence
from typing import Final

from oslo_config import cfg
from oslo_log import log

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import agent, api, conductor
from cyborg_lite.cmd.runner import daemon
from cyborg_lite.cmd.runner.daemon_group import DaemonGroup
from cyborg_lite.db.core import migration
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.rpc import transport

__all__ = ['build', 'main', 'runtime']

LOG = log.getLogger(__name__)

BINARY: Final = 'cyborg-lite-standalone'
_DESCRIPTION: Final = 'API, conductor and agent of cyborg_lite in one process.'

OPTIONS: Final = [
    cfg.BoolOpt(
        'trust-network',
        default=False,
        help='Allow auth_strategy noauth on an address that other hosts can reach. '
        'Every caller is then an administrator. Use it in closed lab networks only.',
    )
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all daemons until SIGTERM; return the exit status."""
    conf = configuration.parse(
        arguments, BINARY, command_line=OPTIONS, description=_DESCRIPTION
    )
    set_defaults(conf)
    identity = daemon.Identity(BINARY, opens_database=True)
    return daemon.run(conf, identity, build)


def set_defaults(conf: cfg.ConfigOpts) -> None:
    """Set the defaults for a single host. Configuration files override them."""
    transport.address(conf)  # registers the option transport_url
    conf.set_default('transport_url', 'local://')
    conf.set_default('auth_strategy', 'noauth', 'api')
    conf.set_default('host', '127.0.0.1', 'api')


def build(conf: cfg.ConfigOpts) -> DaemonGroup:
    """Build all daemons from the configuration, without starting them.

    :raises ConfigurationError: if a value is invalid, or if other hosts could use the
        API without authentication
    """
    _check_exposure(conf)
    return DaemonGroup(
        # The order of the shutdown is the reverse: the API answers its last requests,
        # and the conductor needs the agent to finish a job.
        [agent.build(conf), conductor.build(conf), api.build(conf)],
        prepare=lambda: migration.upgrade(conf.database.connection),
    )


def _check_exposure(conf: cfg.ConfigOpts) -> None:
    if conf.api.auth_strategy != 'noauth' or _is_loopback(conf.api.host):
        return
    if not conf.trust_network:
        raise ConfigurationError(
            reason=f'[api] host is {conf.api.host}, which other hosts can reach, and '
            '[api] auth_strategy is noauth, which makes every caller an administrator. '
            'Set host to 127.0.0.1, set auth_strategy to keystone, or pass '
            '--trust-network.'
        )
    LOG.warning(
        'EVERY CALLER OF %s IS AN ADMINISTRATOR: --trust-network is set.', conf.api.host
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'


if __name__ == '__main__':
    sys.exit(main())
