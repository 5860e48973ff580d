# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-api: the daemon that serves the REST API."""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import sys
from collections.abc import Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.api.app import assemble
from cyborg_lite.api.server import ApiServer
from cyborg_lite.cmd import daemon
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.conductor import ConductorAPI

__all__ = ['ApiDaemon', 'application_from_files', 'build', 'main', 'runtime']

BINARY: Final = 'cyborg-lite-api'

# Seconds after which a client hears that somebody is away, of whom nothing else tells:
# a server that hangs refuses no connection. The library's minute is what clients have.
_PATIENCE: Final = 30


class ApiDaemon:
    """The web server with the application and its connection to the bus."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._bus: transport.Transport | None = None  # None: not started
        self._server: ApiServer | None = None

    @property
    def port(self) -> int:
        """Where it listens, also when the system chose; after ``start``."""
        if self._server is None:
            raise RuntimeError('not started')
        return self._server.port

    def start(self) -> None:
        """:raises ConfigurationError: the address or the certificate is wrong"""
        self._bus = transport.connect(self._conf, _PATIENCE)
        application = assemble(self._conf, ConductorAPI(self._bus))
        self._server = ApiServer(application, self._conf.api)
        self._server.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.stop()

    def wait(self) -> None:
        if self._server is not None:
            self._server.wait()
        if self._bus is not None:
            self._bus.cleanup()


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    conf = configuration.parse(sys.argv[1:] if arguments is None else arguments, BINARY)
    return daemon.run(conf, daemon.Identity(BINARY, workers=conf.api.workers), build)


def build(conf: cfg.ConfigOpts) -> ApiDaemon:
    return ApiDaemon(conf)


def application_from_files() -> Any:
    """The WSGI application for a server that is not ours, with a bus of its own."""
    conf = configuration.parse([], BINARY)
    configuration.set_up_logging(conf)
    return assemble(conf, ConductorAPI(transport.connect(conf, _PATIENCE)))


if __name__ == '__main__':
    sys.exit(main())
