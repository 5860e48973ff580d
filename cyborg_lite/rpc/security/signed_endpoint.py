# SPDX-License-Identifier: Apache-2.0
"""Receives messages for a dispatcher, and checks their signatures."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Final

import oslo_messaging

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.methods import HOST, SHORT_METHODS
from cyborg_lite.rpc.security.keys import Peer, Role
from cyborg_lite.rpc.security.replay import Challenged
from cyborg_lite.rpc.security.signing import Signer, sign_reply
from cyborg_lite.rpc.terms import Terms

Once = Callable[[str, Callable[[], CyborgError]], AbstractContextManager[None]]
"""Serves a call, given its signature and the error for a repeated call."""

_expect_errors: Final = oslo_messaging.expected_exceptions(CyborgError)


# Any, in this module: JSON values.
def is_allowed(sender: Peer, terms: Terms, arguments: Mapping[str, Any]) -> bool:
    """Check whether a daemon may call a method of the conductor.

    An agent may name its own host only.
    """
    if sender.role not in terms.senders:
        return False
    is_of_agents = terms.senders == {Role.AGENT}
    return not is_of_agents or arguments.get(HOST) == sender.host


class Endpoint:
    """The methods that the server of a topic calls."""

    def __init__(
        self, dispatcher: Dispatcher, signer: Signer | None, once: Once | None = None
    ) -> None:
        """Store the arguments.

        :param signer: None: the messages are not signed
        :param once: refuses calls that another process has served; None: it has not
        """
        version = dispatcher.interface.version
        self.target = oslo_messaging.Target(version=version)
        self._dispatcher = dispatcher
        self._signer = signer
        self._once = once or (lambda _call, _refuse: nullcontext())

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the function that serves a method."""
        if not self._dispatcher.implements(name):
            raise AttributeError(name)
        if self._signer is None:
            serve = partial(self._serve, name)
        else:
            serve = partial(self._serve_signed, self._signer, name)
        function: Callable[..., Any] = _expect_errors(serve)
        return function

    def _serve(self, name: str, context: RequestContext, /, **arguments: Any) -> Any:
        return self._dispatcher.call(name, context, arguments)

    def _serve_signed(
        self, signer: Signer, name: str, context: RequestContext, /, **arguments: Any
    ) -> Any:
        dispatcher = self._dispatcher
        request = signer.verify(name, context.received, arguments)
        if request is None:
            return dispatcher.call(name, context, arguments)
        try:
            signer.accept(request)
        except Challenged as challenge:
            return sign_reply(request, challenge)
        if name in SHORT_METHODS:
            arguments.setdefault(HOST, request.sender.host)
        terms = dispatcher.interface.methods[name].terms
        if signer.is_conductor and not is_allowed(request.sender, terms, arguments):
            raise signer.refuse('not allowed', str(request.sender))
        refuse = partial(signer.refuse, 'repeated', str(request.sender))
        try:
            with self._once(request.call, refuse):
                result = dispatcher.call(name, context, arguments)
        except CyborgError as error:
            return sign_reply(request, error)
        return sign_reply(request, result)
