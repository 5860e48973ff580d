# SPDX-License-Identifier: Apache-2.0
"""The message bus: servers, clients, and the request context on every message."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import oslo_messaging
from kombu import exceptions as kombu_errors
from oslo_config import cfg
from oslo_log import log
from oslo_messaging import server as messaging_server
from oslo_messaging._drivers.impl_rabbit import amqpdriver
from oslo_messaging._metrics import client as metrics
from oslo_messaging._tracing import client as tracing
from oslo_messaging.rpc import client as rpc_client

from cyborg_lite.exceptions import CyborgError, ServiceUnavailable
from cyborg_lite.rpc.context import RequestContext

LOG = log.getLogger(__name__)

# For the annotations of other rooms: only this one imports the library.
Transport = oslo_messaging.Transport

CONDUCTOR_TOPIC: Final = 'cyborg_lite.conductor'
AGENT_TOPIC: Final = 'cyborg_lite.agent'

_REBUILT_HERE: Final = ['cyborg_lite.exceptions', 'cyborg_lite.rpc.wire']

# Measured: 16 workers serve twice the calls of the library's 64, at a third of the
# latency, because they fight less for the interpreter.
_WORKERS: Final = 16


# Seconds. A connection on which nothing comes looks up that often whether it is to end.
# The library has 5, and a daemon that ends waits for two of them, one after the other.
# It must be changed after `impl_rabbit` was imported, which limits an option by it.
_IDLE: Final = 1.0


# How often a call is sent again while the broker is away. The library's own way is to
# try for ever, and its timeout begins only after that: the client would never hear.
_RETRIES: Final = 1


# With it the broker sends back what no queue takes, and the caller hears at once that
# nobody is there, and not after its whole timeout.
_SENT_BACK: Final = oslo_messaging.TransportOptions(at_least_once=True)

# A connection that cannot be made is an error of the library below the library.
_FAILURES: Final = (
    oslo_messaging.MessagingException,
    oslo_messaging.MessageUndeliverable,
    kombu_errors.OperationalError,
)


class _ContextSerializer(oslo_messaging.NoOpSerializer):  # type: ignore[misc]  # untyped
    def serialize_context(self, context: RequestContext) -> dict[str, Any]:
        return context.to_wire()

    def deserialize_context(self, values: Mapping[str, Any]) -> RequestContext:
        # Also makes it the current one, so that each log line bears the request id.
        return RequestContext.from_dict(dict(values))


def set_library_defaults() -> None:
    """Our defaults for the library's options, in the sample file too."""
    oslo_messaging.set_transport_defaults(control_exchange='cyborg_lite')
    cfg.set_defaults(messaging_server._pool_opts, executor_thread_pool_size=_WORKERS)


def address(conf: cfg.ConfigOpts) -> str:
    """Where the bus is, with the password in it."""
    return str(oslo_messaging.TransportURL.parse(conf))


def connect(
    conf: cfg.ConfigOpts, patience: int | None = None
) -> oslo_messaging.Transport:
    """The transport of this process; made after fork, closed by its owner.

    :param patience: seconds that a call waits for its answer, unless the operator says
        otherwise or the call itself does; None: the library's
    """
    set_library_defaults()
    if patience is not None:
        conf.register_opts(rpc_client._client_opts)
        conf.set_default('rpc_response_timeout', patience)
    # The library registers these two on its global object alone, and reads them from
    # the one that it is given.
    conf.register_opts(metrics.oslo_messaging_metrics, 'oslo_messaging_metrics')
    conf.register_opts(tracing.oslo_messaging_tracing, 'oslo_messaging_tracing')
    amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MAX = _IDLE
    return oslo_messaging.get_rpc_transport(conf, allowed_remote_exmods=_REBUILT_HERE)


class Server:
    """Serves one topic from ``start`` until ``stop``."""

    def __init__(self, inner: oslo_messaging.MessageHandlingServer) -> None:
        self._inner = inner

    def start(self) -> None:
        self._inner.start()

    def stop(self) -> None:
        """Take no more calls."""
        self._inner.stop()

    def wait(self) -> None:
        """Return when the calls that were taken are answered; after ``stop``."""
        self._inner.wait()
        # The broker goes on delivering until the connection is closed, and whatever
        # the library reads while it closes it, it acknowledges and forgets: the caller
        # would wait for its whole timeout. A stopped listener hands out just these.
        listener = self._inner.listener._poll_style_listener
        while taken := listener.poll(timeout=0):
            self._inner._process_incoming(taken)


def serve(
    transport: oslo_messaging.Transport,
    topic: str,
    host: str,
    endpoints: Sequence[object],
) -> Server:
    """A server that is not started yet."""
    inner = oslo_messaging.get_rpc_server(
        transport,
        oslo_messaging.Target(topic=topic, server=host),
        endpoints,
        serializer=_ContextSerializer(),
        access_policy=oslo_messaging.DefaultRPCAccessPolicy,
    )
    return Server(inner)


def interface(version: str) -> oslo_messaging.Target:
    """The ``target`` of a class of endpoints: the version that it serves."""
    return oslo_messaging.Target(version=version)


class Caller:
    """What the typed clients have in common."""

    def __init__(
        self, transport: oslo_messaging.Transport, topic: str, version: str
    ) -> None:
        self._transport = transport
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(topic=topic, version=version),
            serializer=_ContextSerializer(),
            retry=_RETRIES,
            transport_options=_SENT_BACK,
        )
        self._peer = topic.rpartition('.')[2]

    def call(
        self,
        context: RequestContext,
        method: str,
        /,
        *,
        since: str,
        timeout: float | None = None,
        **arguments: Any,
    ) -> Any:
        """The answer of any server of the topic. ``timeout`` in seconds.

        :raises ServiceUnavailable: nobody answered; the call may still be done
        :raises CyborgError: what the server raised
        """
        client = self._prepared(since, timeout=timeout)
        return self._call(client, context, method, arguments)

    def call_host(
        self,
        context: RequestContext,
        host: str,
        method: str,
        /,
        *,
        since: str,
        timeout: float | None = None,
        **arguments: Any,
    ) -> Any:
        """As ``call``, of the server on one host. ``timeout`` in seconds."""
        client = self._prepared(since, server=host, timeout=timeout)
        return self._call(client, context, method, arguments)

    def _prepared(
        self, since: str, server: str | None = None, timeout: float | None = None
    ) -> oslo_messaging.RPCClient:
        options: dict[str, Any] = {'version': since}
        if server is not None:
            options['server'] = server
        if timeout is not None:
            options['timeout'] = timeout
        return self._client.prepare(**options)

    def _call(
        self,
        client: oslo_messaging.RPCClient,
        context: RequestContext,
        method: str,
        arguments: Mapping[str, Any],
    ) -> Any:
        try:
            _check_reachable(self._transport)
            return client.call(context, method, **arguments)
        except _FAILURES as error:
            # Who called tells it as loudly as it deserves; an agent calls for ever.
            LOG.info('%s of %s failed: %s', method, self._peer, type(error).__name__)
            raise ServiceUnavailable(what=f'cyborg-lite-{self._peer}') from error


def _check_reachable(bus: oslo_messaging.Transport) -> None:
    """Return where a first call may be tried.

    The library makes the queue for answers with the first call, and does so without
    the limit that it has for messages: it would wait there for a broker that is away.

    :raises OperationalError: there is no broker
    """
    driver = bus._driver
    brokered = isinstance(driver, amqpdriver.AMQPDriverBase)
    if brokered and driver._reply_q is None:
        with driver._get_connection(retry=_RETRIES):
            pass


def endpoint(method: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method of an interface: its errors go to the caller, not to the log.

    An error that nobody foresaw goes to the log, and to the caller as one of ours
    without its text.
    """

    @functools.wraps(method)
    def guarded(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except CyborgError:
            raise
        except Exception:
            # One request must end neither the server nor the caller. The library would
            # send a built-in error as itself, with the traceback for a text.
            LOG.exception('%s failed', method.__qualname__)
            raise CyborgError from None

    marked = oslo_messaging.expected_exceptions(CyborgError)(guarded)
    return marked  # type: ignore[no-any-return]  # the library is untyped
