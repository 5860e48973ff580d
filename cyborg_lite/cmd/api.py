# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-api, the daemon that serves the REST API."""

from cyborg_lite import runtime  # isort: skip  # must be imported first: it may monkey-patch

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite import version
from cyborg_lite.api.app import assemble
from cyborg_lite.api.metrics import ApiMetrics
from cyborg_lite.api.server import ApiServer
from cyborg_lite.cmd import daemon, garbage_collection, message_keys
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import CONDUCTOR, ServiceState
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.keys import Role
from cyborg_lite.rpc.upgrade_levels import Pins

__all__ = ['ApiDaemon', 'application_from_files', 'build', 'main', 'runtime']

BINARY: Final = 'cyborg-lite-api'
_DESCRIPTION: Final = (
    'The daemon that serves the REST API of cyborg_lite. Any number may run.'
)

# Seconds until an unanswered RPC ends in a 503. A hung conductor refuses no connection,
# so only a timeout detects it. The default of oslo.messaging, 60 s, is also the timeout
# of most clients, which would then never see the 503.
RPC_TIMEOUT: Final = 30
# Seconds. The versions of the conductors are read during a call.
_VERSIONS_TIMEOUT: Final = 5.0


class ApiDaemon:
    """The web server with the WSGI application and its message bus connection."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        connect: Callable[[cfg.ConfigOpts], transport.Transport],
    ) -> None:
        self._conf = conf
        self._connect = connect
        self._bus: transport.Transport | None = None  # None: not started
        self._server: ApiServer | None = None

    @property
    def port(self) -> int:
        """The TCP port of the server; available after ``start``.

        If the configured port is 0, this is the port that the kernel chose.
        """
        if self._server is None:
            raise RuntimeError('not started')
        return self._server.port

    def start(self) -> None:
        """Connect to the message bus and start to serve requests.

        :raises ConfigurationError: if the address or the certificate is invalid
        """
        self._bus = self._connect(self._conf)
        metrics = ApiMetrics()
        ports = _metrics_ports(self._conf)
        if ports:
            metrics.serve(self._conf.api.metrics_host, ports)
        application = assemble(self._conf, ConductorAPI(self._bus), metrics)
        self._server = ApiServer(application, self._conf.api)
        self._server.start()

    def list_threads(self) -> list[threading.Thread]:
        """Return the threads that run until the stop."""
        return [] if self._server is None else self._server.list_threads()

    def stop(self) -> None:
        """Stop to accept connections."""
        if self._server is not None:
            self._server.stop()

    def wait(self) -> None:
        """Wait until the current requests are answered, then disconnect."""
        if self._server is not None:
            self._server.wait()
        if self._bus is not None:
            self._bus.cleanup()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the API daemon until SIGTERM; return the exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    conf = configuration.parse(arguments, BINARY, description=_DESCRIPTION)
    return daemon.run(conf, daemon.Identity(BINARY, workers=conf.api.workers), build)


def build(
    conf: cfg.ConfigOpts,
    connect: Callable[[cfg.ConfigOpts], transport.Transport] | None = None,
) -> ApiDaemon:
    """Build the API daemon from the configuration, without starting it.

    :param connect: returns the message bus; None: the configured one
    """
    return ApiDaemon(conf, connect or _connect)


def _metrics_ports(conf: cfg.ConfigOpts) -> range:
    """Return one port per worker process; each binds the first free one."""
    first = conf.api.metrics_port
    return range(first, first + conf.api.workers) if first else range(0)


def application_from_files() -> Any:
    """Return the WSGI application for an external server such as uWSGI.

    It has its own connection to the message bus.
    """
    conf = configuration.parse([], BINARY)
    configuration.set_up_logging(conf)
    application = assemble(conf, ConductorAPI(_connect(conf)))
    garbage_collection.exempt_objects_of_start()
    return application


def _connect(conf: cfg.ConfigOpts) -> transport.Transport:
    """Connect to the message bus.

    :raises ConfigurationError: the transport or the key file is invalid
    """
    signer = message_keys.create_signer(conf, Role.API)
    bus = transport.connect(conf, RPC_TIMEOUT, signer)
    read_versions = partial(
        _read_versions, ConductorAPI(bus).with_timeout(_VERSIONS_TIMEOUT)
    )
    transport.pin_versions(bus, Pins(conf.upgrade_levels, read_versions))
    return bus


def _read_versions(conductor: ConductorAPI) -> Iterator[tuple[str, str]]:
    """Yield binary and version of each running conductor of another version."""
    query = Query(filters={'binary': (CONDUCTOR,), 'state': (ServiceState.UP,)})
    for service in conductor.list_services(daemon_context(), query):
        if service.version != version.version():
            yield service.binary, service.version


if __name__ == '__main__':
    sys.exit(main())
