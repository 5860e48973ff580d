# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-standalone: API, conductor and agent in one process, on one host.

Without a configuration it uses messaging inside the process and trusts every caller,
and therefore listens on loopback alone.
"""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import ipaddress
import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol, runtime_checkable

from oslo_config import cfg
from oslo_log import log

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import agent, api, conductor, daemon
from cyborg_lite.db import migration
from cyborg_lite.exceptions import ConfigurationError, CyborgError
from cyborg_lite.rpc import transport

__all__ = ['build', 'main', 'runtime']

LOG = log.getLogger(__name__)

BINARY: Final = 'cyborg-lite-standalone'

OPTIONS: Final = [
    cfg.BoolOpt(
        'trust-network',
        default=False,
        help='Listen on an address that others can reach although every caller is '
        'trusted. For closed laboratory networks alone.',
    )
]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    conf = configuration.parse(given, BINARY, command_line=OPTIONS)
    set_defaults(conf)
    identity = daemon.Identity(BINARY, opens_database=True)
    return daemon.run(conf, identity, build)


def set_defaults(conf: cfg.ConfigOpts) -> None:
    """What a lone host wants; a file that says something else is heard."""
    transport.address(conf)  # makes its option known
    conf.set_default('transport_url', 'local://')
    conf.set_default('auth_strategy', 'noauth', 'api')
    conf.set_default('host', '127.0.0.1', 'api')


def build(conf: cfg.ConfigOpts) -> 'Standalone':
    """:raises ConfigurationError: a value is wrong, or would open the door to all"""
    _check_door(conf)
    return Standalone(
        prepare=lambda: migration.upgrade(conf.database.connection),
        # They end in the opposite order: clients of the API hear answers to the last,
        # and the conductor needs the agent to finish a job.
        start=[agent.build(conf), conductor.build(conf), api.build(conf)],
    )


def _check_door(conf: cfg.ConfigOpts) -> None:
    if conf.api.auth_strategy != 'noauth' or _is_loopback(conf.api.host):
        return
    if not conf.trust_network:
        raise ConfigurationError(
            reason=f'[api] host is {conf.api.host}, which others can reach, and '
            'auth_strategy is noauth, which trusts them all. Use 127.0.0.1 or '
            'keystone, or give --trust-network.'
        )
    LOG.warning(
        'EVERYBODY WHO REACHES %s IS AN ADMINISTRATOR: --trust-network was given.',
        conf.api.host,
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == 'localhost'


@runtime_checkable
class Retiring(Protocol):
    """For daemons that do something of their own accord, beside serving others."""

    def retire(self) -> None:
        """Do nothing more unless asked, but go on serving."""
        ...


class Standalone:
    """Daemons that live and end together."""

    def __init__(
        self, prepare: Callable[[], None], start: Sequence[daemon.Daemon]
    ) -> None:
        """:param start: each may need those before it, to serve and to end"""
        self._prepare = prepare
        self._parts = start
        self._started: list[daemon.Daemon] = []

    def start(self) -> None:
        self._prepare()
        for part in self._parts:
            try:
                part.start()
            except CyborgError:
                self.wait()
                raise
            self._started.append(part)

    def stop(self) -> None:
        """Only begin nothing new: one may stop when those that need it have ended."""
        for part in self._started:
            if isinstance(part, Retiring):
                part.retire()

    def wait(self) -> None:
        while self._started:
            part = self._started.pop()
            part.stop()
            part.wait()


if __name__ == '__main__':
    sys.exit(main())
