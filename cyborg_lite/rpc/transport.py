# SPDX-License-Identifier: Apache-2.0
"""Message bus: servers, clients, and the request context of every message."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary

import oslo_messaging
from amqp import exceptions as amqp_errors
from kombu import exceptions as kombu_errors
from oslo_concurrency import lockutils
from oslo_config import cfg
from oslo_log import log
from oslo_messaging import opts
from oslo_messaging import server as messaging_server
from oslo_messaging._drivers.impl_rabbit import amqpdriver

from cyborg_lite import errors
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import (
    BrokerRefused,
    ConfigurationError,
    ServiceUnavailable,
)
from cyborg_lite.rpc import broker_errors
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.local import driver as local
from cyborg_lite.rpc.security.keys import Peer, Role
from cyborg_lite.rpc.security.signed_calls import SignedCaller
from cyborg_lite.rpc.security.signed_endpoint import Endpoint, Once
from cyborg_lite.rpc.security.signing import Signer
from cyborg_lite.rpc.terms import FIRST_VERSION
from cyborg_lite.rpc.upgrade_levels import Pins, parse_level

LOG = log.getLogger(__name__)

# For annotations in other packages: only this package imports the library.
Transport = oslo_messaging.Transport

# Measured: 16 threads serve twice the calls of the library default of 64, at a third of
# the latency, because they compete less for the interpreter lock.
_WORKERS: Final = 16

# Seconds between the checks of an idle connection for a stop. The library default is 5,
# and a stopping daemon waits for two connections in turn. The value must be set after
# the import of `impl_rabbit`, which derives the limit of an option from it.
#
# After each message the library starts with 1 ms and doubles it, because receivers of
# notifications acknowledge in other threads. RPC servers and callers acknowledge while
# they receive. Measured with one client on a busy machine: without these checks an ARQ
# cycle takes 9 ms less CPU time, of 56 ms. With 8 clients the difference is within the
# spread of the runs.
_STOP_CHECK_INTERVAL: Final = 1.0


# Number of retries while the broker is unreachable. By default the library retries for
# ever and starts the timeout afterwards, so the caller would never get an error.
_RETRIES: Final = 1

# For calls of the API: with the pauses of the library, which are 1, 3, 5 and 7 s, the
# broker may be away for 16 s. A call that no queue has accepted has no effect.
_PATIENT_RETRIES: Final = 4


_RABBIT: Final = 'oslo_messaging_rabbit'
_RABBIT_SCHEME: Final = 'rabbit'

# Groups of the library that only the global object of oslo.config has.
_GLOBAL_GROUPS: Final = ('oslo_messaging_metrics', 'oslo_messaging_tracing')

_OPTION_KINDS: Final = {bool: cfg.BoolOpt, int: cfg.IntOpt}

# The broker returns a message that no queue accepts. The caller then fails at once if
# no server listens, not after its whole timeout.
_MANDATORY_DELIVERY: Final = oslo_messaging.TransportOptions(at_least_once=True)

# oslo.messaging does not translate the errors of a failed connection.
FAILURES: Final = (
    oslo_messaging.MessagingException,
    oslo_messaging.MessageUndeliverable,
    kombu_errors.OperationalError,
    amqp_errors.AMQPError,
)
"""Errors of an unreachable or refusing broker."""


# The signer of each transport whose messages are signed.
_signers: WeakKeyDictionary[oslo_messaging.Transport, Signer] = WeakKeyDictionary()
_pins: WeakKeyDictionary[oslo_messaging.Transport, Pins] = WeakKeyDictionary()


class _ContextSerializer(oslo_messaging.NoOpSerializer):  # type: ignore[misc]  # untyped
    def serialize_context(
        self, context: RequestContext | dict[str, Any]
    ) -> dict[str, Any]:
        """Return the context as a JSON object; a signed one is a JSON object."""
        return context if isinstance(context, dict) else context.to_wire()

    def deserialize_context(self, values: Mapping[str, Any]) -> RequestContext:
        """Return the context of a received message."""
        # from_dict makes it the current context, so each log line has the request id,
        # also before the signature is checked.
        context = RequestContext.from_dict(
            {key: _replace_controls(value) for key, value in values.items()}
        )
        context.received = values
        return context


# Any: a value of JSON.
def _replace_controls(value: Any) -> Any:
    """Return a text that cannot forge lines of a log; other values as they are."""
    if not isinstance(value, str) or value.isprintable():
        return value
    return ''.join(char if char.isprintable() else '?' for char in value)


def set_library_defaults() -> None:
    """Set defaults for options of oslo.messaging; the sample file shows them too."""
    oslo_messaging.set_transport_defaults(control_exchange='cyborg_lite')
    cfg.set_defaults(messaging_server._pool_opts, executor_thread_pool_size=_WORKERS)


def address(conf: cfg.ConfigOpts) -> str:
    """Return the transport URL, including the password.

    :raises ConfigurationError: the URL is invalid
    """
    try:
        return str(oslo_messaging.TransportURL.parse(conf))
    except (oslo_messaging.InvalidTransportURL, ValueError):
        # The text of the error may contain the password.
        reason = '[DEFAULT] transport_url is not a transport URL.'
        raise ConfigurationError(reason=reason) from None


def connect(
    conf: cfg.ConfigOpts,
    default_timeout: int | None = None,
    signer: Signer | None = None,
    url: str | None = None,
    *,
    identity: str | None = '',
) -> oslo_messaging.Transport:
    """Return a new transport; create it after a fork, and clean it up after use.

    :param default_timeout: seconds that a call waits for its reply, unless configured
        or passed to the call; None: default of the library
    :param signer: signs and checks all messages; None: messages are not signed
    :param url: None: the configured one
    :param identity: of an agent, which another one with its host name does not have.
        None: of a command, several of which may run at the same time
    :raises ConfigurationError: the URL or an option of the broker is invalid, or as
        ``prepare_locks``
    """
    set_library_defaults()
    broker_errors.hide_library_lines()
    _register_options(conf)
    scheme = (url or address(conf)).partition(':')[0]
    if scheme == _RABBIT_SCHEME:
        _name_reply_queues(conf, identity)
    if default_timeout is not None:
        conf.set_default('rpc_response_timeout', default_timeout)
    amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MIN = _STOP_CHECK_INTERVAL
    amqpdriver.ACK_REQUEUE_EVERY_SECONDS_MAX = _STOP_CHECK_INTERVAL
    try:
        bus = oslo_messaging.get_rpc_transport(
            conf, url, allowed_remote_exmods=list(errors.MODULES)
        )
    except oslo_messaging.DriverLoadFailure as error:
        reason = f'[DEFAULT] transport_url: there is no transport {scheme}.'
        raise ConfigurationError(reason=reason) from error
    except cfg.Error as error:
        raise ConfigurationError(reason=str(error)) from None
    prepare_locks(conf)
    if signer is not None:
        _signers[bus] = signer
    return bus


def find_signer(transport: oslo_messaging.Transport) -> Signer | None:
    """Return the signer of a transport; None: its messages are not signed."""
    return _signers.get(transport)


def pin_versions(transport: oslo_messaging.Transport, pins: Pins) -> None:
    """Limit the interface versions of the calls over a transport."""
    _pins[transport] = pins


def _register_options(conf: cfg.ConfigOpts) -> None:
    """Register the options that the library reads from ``conf``.

    The library registers some of its groups on the global object of oslo.config only.
    Releases differ in these groups.
    """
    for group, options in opts.list_opts():
        if group is None:
            conf.register_opts(options)
    for group in _GLOBAL_GROUPS:
        if group in cfg.CONF:
            for name, default in cfg.CONF[group].items():
                kind = _OPTION_KINDS.get(type(default), cfg.StrOpt)
                conf.register_opt(kind(name, default=default), group=group)


def _name_reply_queues(conf: cfg.ConfigOpts, identity: str | None) -> None:
    """Give each process a reply queue of its own.

    With ``use_queue_manager`` the library names a reply queue after the script, with a
    number from a file that is also named after the script. All services on a host that
    run under the same web server would share this file. The numbers start again for
    each process group, so a second command would take the queue of the first one.
    Therefore the name is that of the daemon, and the name for a command is random.
    Agents in two containers of a machine differ in ``[DEFAULT] host`` only. An agent
    that is refused for its host must not take the replies of the other one.
    """
    conf.register_opts(dict(opts.list_opts())[_RABBIT], _RABBIT)
    if 'host' in conf:
        conf.set_default('hostname', conf.host, _RABBIT)
    name = f'{conf.prog}-{identity[:8]}' if identity else conf.prog
    conf.set_default('processname', name, _RABBIT)
    if identity is None:
        conf.set_override('use_queue_manager', False, _RABBIT)


def prepare_locks(conf: cfg.ConfigOpts) -> None:
    """Prepare the lock files of the queue manager of the library.

    The library reads ``lock_path`` from the global object.

    :raises ConfigurationError: the queue manager is enabled without a directory
    """
    path = lockutils.get_lock_path(conf)
    if path:
        cfg.CONF.set_default('lock_path', path, 'oslo_concurrency')
    elif _has_queue_manager(conf):
        raise ConfigurationError(
            reason='[oslo_messaging_rabbit] use_queue_manager requires a directory in '
            '[oslo_concurrency] lock_path.'
        )


def find_lock_fault(conf: cfg.ConfigOpts) -> str:
    """Return why this process cannot create the lock files; empty: it can.

    The library takes a lock at each call, so each call fails without the files.
    """
    path = lockutils.get_lock_path(conf)
    if not path or not _has_queue_manager(conf):
        return ''
    try:
        os.makedirs(path, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            return ''
    except OSError as error:
        return (
            '[oslo_concurrency] lock_path: the daemon cannot create files in '
            f'{path}: {error.strerror}.'
        )


def _has_queue_manager(conf: cfg.ConfigOpts) -> bool:
    if not address(conf).startswith(f'{_RABBIT_SCHEME}:'):
        return False
    conf.register_opts(dict(opts.list_opts())[_RABBIT], _RABBIT)
    return bool(conf[_RABBIT].use_queue_manager)


class Server:
    """Serves one topic from ``start`` until ``stop``."""

    def __init__(self, inner: oslo_messaging.MessageHandlingServer) -> None:
        self._inner = inner

    def check_queues(self) -> None:
        """Declare the queues without serving calls, unless the broker is unreachable.

        :raises ConfigurationError: the broker refuses the user or the queues
        """
        driver = self._inner.transport._driver
        if not isinstance(driver, amqpdriver.AMQPDriverBase):
            return
        with broker_errors.translate_errors():
            try:
                with driver._get_connection(retry=_RETRIES):
                    pass
            except FAILURES as error:
                if broker_errors.explain_error(error) is not None:
                    raise
                LOG.info('Queues not checked: %s', type(error).__name__)
                return
            self._inner._create_listener().cleanup()

    def start(self) -> None:
        """Start to serve calls.

        Wait until the broker is reachable.

        :raises ConfigurationError: the broker refuses the user or the queues
        """
        with broker_errors.translate_errors():
            self._inner.start()

    def stop(self) -> None:
        """Accept no more calls."""
        self._inner.stop()

    def wait(self) -> None:
        """Wait until all accepted calls are answered. Call it after ``stop``."""
        self._inner.wait()
        # The broker delivers until the connection is closed. The library acknowledges
        # and drops messages that it reads while it closes the connection, so their
        # callers would wait for the whole timeout. A stopped listener returns exactly
        # these messages.
        listener = self._inner.listener._poll_style_listener
        while messages := listener.poll(timeout=0):
            self._inner._process_incoming(messages)


def serve(
    transport: oslo_messaging.Transport,
    host: str,
    dispatcher: Dispatcher,
    once: Once | None = None,
) -> Server:
    """Return a server of an interface; the caller starts it.

    :param once: refuses signed calls that another server has served; None: none are
    """
    inner = oslo_messaging.get_rpc_server(
        transport,
        oslo_messaging.Target(topic=dispatcher.interface.topic, server=host),
        [Endpoint(dispatcher, find_signer(transport), once)],
        serializer=_ContextSerializer(),
        access_policy=oslo_messaging.DefaultRPCAccessPolicy,
    )
    return Server(inner)


@dataclass(frozen=True, slots=True)
class Message:
    """Call of a server, as the clients send it."""

    method: str
    arguments: Mapping[str, Any]  # JSON values by name
    since: str  # lowest interface version that can serve the call
    timeout: float | None = None  # seconds to wait for the answer; None: configured
    has_answer: bool = True
    host: str = ''  # of the server; empty: any server
    is_patient: bool = False  # True: wait for a broker that restarts


class Caller:
    """Sends the messages of the clients."""

    def __init__(
        self, transport: oslo_messaging.Transport, topic: str, version: str
    ) -> None:
        self._transport = transport
        self._client = oslo_messaging.get_rpc_client(
            transport,
            oslo_messaging.Target(topic=topic, version=version),
            serializer=_ContextSerializer(),
            retry=_RETRIES,
            transport_options=_MANDATORY_DELIVERY,
        )
        self._role = Role(topic.rpartition('.')[2])
        self._last_reason: str | None = None  # logged; None: none since then

    def send(self, context: RequestContext, message: Message) -> Any:
        """Send a message to a server of the topic and return the answer, if it has one.

        :raises ServiceUnavailable: the broker did not accept the message, or no server
            answered; the call may still be executed
        :raises CyborgError: the error that the server raised
        """
        self._check_level(message)
        client, arguments = self._prepare_client(message), message.arguments
        signer = find_signer(self._transport)
        with self._translate_failures(message.method):
            _check_reachable(self._transport, _count_retries(message))
            if signer is not None:
                receiver = Peer(self._role, message.host)
                client = SignedCaller(signer, client, receiver)
            send = client.call if message.has_answer else client.cast
            return send(context, message.method, **arguments)

    def _check_level(self, message: Message) -> None:
        """Refuse a call that a server of an earlier release cannot serve.

        :raises ServiceUnavailable: as from such a server
        """
        pins, since = _pins.get(self._transport), message.since
        if pins is None or since == FIRST_VERSION:
            return
        level = pins.find_level(self._role)
        if level is not None and parse_level(since) > parse_level(level):
            error = oslo_messaging.UnsupportedVersion(since, message.method)
            raise ServiceUnavailable(what=f'cyborg-lite-{self._role}') from error

    def _prepare_client(self, message: Message) -> oslo_messaging.RPCClient:
        options: dict[str, Any] = {
            'version': message.since,
            'retry': _count_retries(message),
        }
        if message.host:
            options['server'] = message.host
        if message.timeout is not None:
            options['timeout'] = message.timeout
        return self._client.prepare(**options)

    @contextmanager
    def _translate_failures(self, method: str) -> Iterator[None]:
        """Raise the errors of the broker as ServiceUnavailable, and log them."""
        try:
            yield
        except CyborgError as error:
            if str(error) == error.text:
                raise
            # The library has added the traceback of the server to the text.
            raise type(error).__mro__[1](**error.kwargs) from error
        except (*FAILURES, OSError) as error:  # OSError: of the lock files
            # The caller logs the error at a fitting level: agents retry for ever.
            LOG.info('%s of %s failed: %s', method, self._role, type(error).__name__)
            reason = broker_errors.explain_error(error)
            if reason is not None and reason != self._last_reason:
                LOG.error('%s', reason)  # what to change in the configuration
            self._last_reason = reason
            if reason is not None and not isinstance(error, OSError):
                raise BrokerRefused() from error
            raise ServiceUnavailable(what=f'cyborg-lite-{self._role}') from error


def _count_retries(message: Message) -> int:
    return _PATIENT_RETRIES if message.is_patient else _RETRIES


def supports_notifications(bus: oslo_messaging.Transport) -> bool:
    """Return False for a transport inside one process, without a broker."""
    return not isinstance(bus._driver, local.LocalDriver)


def check_connection(bus: oslo_messaging.Transport) -> None:
    """Check that the broker accepts the user of the configuration.

    :raises ConfigurationError: the broker refuses the user or the virtual host
    :raises ServiceUnavailable: the broker is unreachable
    """
    try:
        with broker_errors.translate_errors():
            _check_reachable(bus)
    except FAILURES as error:
        raise ServiceUnavailable(what='RabbitMQ') from error


def _check_reachable(bus: oslo_messaging.Transport, retries: int = _RETRIES) -> None:
    """Check that the broker is reachable before the first call.

    The library creates the reply queue with the first call, and without a retry limit.
    It would wait there for an unreachable broker for ever.

    :raises OperationalError: the broker is unreachable
    """
    driver = bus._driver
    brokered = isinstance(driver, amqpdriver.AMQPDriverBase)
    if brokered and driver._reply_q is None:
        with driver._get_connection(retry=retries):
            pass
