# SPDX-License-Identifier: Apache-2.0
"""Clients of the RPC interfaces, with one function for each declared method.

Callers get a client typed as the interface: ``Conductor`` or ``Agents``.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from cyborg_lite import codec
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.rpc.arguments import MAX_SIZE, load_answer
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.interface import Agents, Conductor
from cyborg_lite.rpc.methods import AGENTS, CONDUCTOR, Interface, Method
from cyborg_lite.rpc.transport import Caller, Message, Transport

# Any, in this module: arguments of any class, and JSON values.
Send = Callable[[RequestContext, Message], Any]
"""Sends a message and returns the answer."""


class Client:
    """Calls the methods of an interface."""

    def __init__(
        self,
        interface: Interface,
        send: Send,
        timeout: float | None = None,
        slow_timeout: float | None = None,
    ) -> None:
        self._send = send
        # Seconds of a call whose method states none; None: configured.
        self._timeout = timeout
        # Seconds of a call of a slow method; None: configured.
        self._slow_timeout = slow_timeout
        for method in interface.methods.values():
            setattr(self, method.name, partial(self._call, method))

    def _call(
        self, method: Method, context: RequestContext, *values: Any, **keywords: Any
    ) -> Any:
        """Call a method of any server."""
        message = self._build_message(method, values, keywords)
        return load_answer(method.answer, self._send(context, message))

    def _build_message(
        self, method: Method, values: Sequence[Any], keywords: dict[str, Any]
    ) -> Message:
        arguments, timeout = (
            method.dump_arguments(values, keywords),
            method.terms.timeout,
        )
        if timeout is None:
            timeout = self._slow_timeout if method.terms.is_slow else self._timeout
        return Message(
            method.name,
            arguments,
            method.find_version(arguments),
            timeout,
            has_answer=method.terms.has_answer,
            is_patient=method.terms.is_patient,
        )


class AgentsClient(Client):
    """Calls the methods of the agent on a host."""

    def _call(
        self,
        method: Method,
        context: RequestContext,
        *values: Any,
        **keywords: Any,
    ) -> Any:
        """Call a method of the server on the host that is the first value.

        :raises HostAway: the agent does not answer
        """
        host, *arguments = values
        message = self._build_message(method, arguments, keywords)
        try:
            answer = self._send(context, replace(message, host=host, is_patient=False))
        except ServiceUnavailable as error:
            raise HostAway(host=host) from error
        return load_answer(method.answer, answer, MAX_SIZE)


def build_conductor(send: Send, timeout: float | None = None) -> Conductor:
    """Return a client of the conductors; see ``connect_conductor``."""
    return cast(Conductor, Client(CONDUCTOR, send, timeout))


def build_agents(
    send: Send, timeout: float | None = None, load_timeout: float | None = None
) -> Agents:
    """Return a client of the agents; see ``connect_agents``."""
    return cast(Agents, AgentsClient(AGENTS, send, timeout, load_timeout))


def connect_conductor(transport: Transport, timeout: float | None = None) -> Conductor:
    """Return a client of the conductors.

    :param timeout: seconds that a call waits for its answer; None: configured
    """
    return build_conductor(_connect(transport, CONDUCTOR), timeout)


def connect_agents(
    transport: Transport, timeout: float, load_timeout: float = 180.0
) -> Agents:
    """Return a client of the agents of all hosts.

    :param timeout: seconds that a call waits for its answer
    :param load_timeout: seconds to fetch a bitstream and load it
    """
    return build_agents(_connect(transport, AGENTS), timeout, load_timeout)


def _connect(transport: Transport, interface: Interface) -> Send:
    return Caller(transport, interface.topic, interface.version).send


def serve_locally(dispatcher: Dispatcher) -> Send:
    """Return a function that calls services in this process, without a message bus.

    Arguments, answers and the context are those that a message would transfer.
    """

    def send(context: RequestContext, message: Message) -> Any:
        """Pass a message to the services as JSON."""
        text = codec.encode([context.to_wire(), message.arguments])
        values, arguments = codec.decode(list[Any], text)
        received = RequestContext.from_dict(values)
        answer = dispatcher.call(message.method, received, arguments)
        return codec.decode(object, codec.encode(answer))

    return send


def is_reachable(conductor: Conductor, context: RequestContext) -> bool:
    """Check whether any conductor answers."""
    try:
        conductor.echo(context)
    except CyborgError:
        return False
    return True
