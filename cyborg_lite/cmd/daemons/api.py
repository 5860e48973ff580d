# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-api, the daemon that serves the REST API."""

from cyborg_lite import runtime  # isort: skip  # must be imported first: it may monkey-patch

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

from oslo_config import cfg
from oslo_log import log

from cyborg_lite import conf as configuration
from cyborg_lite.api.app import assemble
from cyborg_lite.api.middleware import Observe
from cyborg_lite.api.server import ApiServer
from cyborg_lite.cmd.daemons import api_application
from cyborg_lite.cmd.daemons.api_application import BINARY
from cyborg_lite.cmd.runner import daemon
from cyborg_lite.conf.api import GROUP, PROXY_OPTIONS
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import MessageRefused
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.context import daemon_context

LOG = log.getLogger(__name__)

__all__ = ['BINARY', 'ApiDaemon', 'build', 'main', 'runtime']

_DESCRIPTION: Final = (
    'The daemon that serves the REST API of cyborg_lite. Any number may run.'
)
_CHECK_TIMEOUT: Final = 2.0  # seconds


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
        self._stopping = threading.Event()

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

        :raises ConfigurationError: if the address is invalid
        """
        _warn_of_proxy_options(self._conf)
        self._bus = self._connect(self._conf)
        observe = _serve_metrics(self._conf)
        conductor = connect_conductor(self._bus)
        application = assemble(self._conf, conductor, observe, self._stopping)
        # The application has registered the option.
        limit = self._conf.oslo_middleware.max_request_body_size
        self._server = ApiServer(application, self._conf.api, limit)
        self._server.start()

    def find_fault(self) -> str:
        """Return why conductors refuse this API; empty: none does.

        An API that no conductor answers is ready: it answers 503 until one starts.
        """
        if self._bus is None:
            return ''
        try:
            connect_conductor(self._bus, _CHECK_TIMEOUT).echo(daemon_context())
        except MessageRefused as error:
            return error.full_text
        except CyborgError:
            return ''
        return ''

    def list_threads(self) -> list[threading.Thread]:
        """Return the threads that run until the stop."""
        return [] if self._server is None else self._server.list_threads()

    def stop(self) -> None:
        """Stop to accept connections, and answer the requests that are held."""
        self._stopping.set()
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
    conf = configuration.parse(arguments, BINARY, description=_DESCRIPTION)
    return daemon.run(conf, daemon.Identity(BINARY, workers=conf.api.workers), build)


def build(
    conf: cfg.ConfigOpts,
    connect: Callable[[cfg.ConfigOpts], transport.Transport] | None = None,
) -> ApiDaemon:
    """Build the API daemon from the configuration, without starting it.

    :param connect: returns the message bus; None: the configured one
    """
    return ApiDaemon(conf, connect or api_application.connect)


def _warn_of_proxy_options(conf: cfg.ConfigOpts) -> None:
    """Log a warning for each former option whose task belongs to a proxy."""
    for path in conf.config_file or ():
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(str(path), sections).parse()
        for name in sorted(PROXY_OPTIONS & sections.get(GROUP, {}).keys()):
            LOG.warning(
                '%s: [%s] %s has no effect. TLS and the limits of clients belong to a '
                'proxy. Configure HAProxy or nginx as in share/cyborg-lite/proxy.',
                path,
                GROUP,
                name,
            )


def _serve_metrics(conf: cfg.ConfigOpts) -> Observe | None:
    """Serve the metrics; return the function that observes an answer.

    :returns: None: ``metrics_port`` is not set, so that nothing observes the answers
    :raises ConfigurationError: none of the ports is free
    """
    first = conf.api.metrics_port
    if not first:
        return None
    # The import takes 0.6 MB.
    from cyborg_lite.api.metrics import ApiMetrics

    metrics = ApiMetrics()
    # One port per worker process; each binds the first free one.
    metrics.serve(conf.api.metrics_host, range(first, first + conf.api.workers))
    return metrics.observe


if __name__ == '__main__':
    sys.exit(main())
