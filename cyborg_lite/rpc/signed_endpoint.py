# SPDX-License-Identifier: Apache-2.0
"""Endpoints that serve only signed requests of daemons that may send them."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import oslo_messaging

from cyborg_lite.exceptions import CyborgError
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.keys import Peer, Role
from cyborg_lite.rpc.replay import Challenged
from cyborg_lite.rpc.signing import SHORT_METHODS, Signer

_AGENT_METHODS: Final = frozenset(
    {
        'heartbeat',
        'reconcile_handles',
        'repeat',
        'report_changes',
        'report_events',
        'report_host',
        'report_recovery',
    }
)
_ECHO: Final = 'echo'


def is_allowed(sender: Peer, method: str, arguments: Mapping[str, Any]) -> bool:
    """Check whether a daemon may call a method of the conductor.

    An agent may speak for its own host only.

    :param arguments: JSON of any type
    """
    if method == _ECHO:
        return True
    if method not in _AGENT_METHODS:
        return sender.role is Role.API
    host = arguments.get('host')
    if method == 'report_host':
        report = arguments.get('report')
        host = report.get('hostname') if isinstance(report, dict) else None
    return sender == Peer(Role.AGENT, str(host))


class SignedEndpoint:
    """The endpoints of a server, behind the check of the signatures."""

    def __init__(self, endpoint: Any, signer: Signer) -> None:
        """Store the arguments.

        :param endpoint: object with RPC methods, of any class
        """
        self.target = endpoint.target
        self._endpoint = endpoint
        self._signer = signer

    # Any: a method with any arguments and result.
    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the RPC method behind the check."""
        method = getattr(self._endpoint, name)
        guarded = functools.partial(self._call, name, method)
        wrap = oslo_messaging.expected_exceptions(CyborgError)
        return wrap(guarded)  # type: ignore[no-any-return]  # the library is untyped

    def _call(
        self,
        name: str,
        method: Callable[..., Any],
        context: RequestContext,
        **arguments: Any,
    ) -> Any:
        signer = self._signer
        request = signer.verify(name, context.received, arguments)
        if request is None:
            return method(context, **arguments)
        try:
            signer.accept(request)
        except Challenged as challenge:
            return signer.sign_challenge(request, challenge)
        if name in SHORT_METHODS:
            arguments.setdefault('host', request.sender.host)
        if signer.is_conductor and not is_allowed(request.sender, name, arguments):
            raise signer.refuse('not allowed', str(request.sender))
        try:
            result = method(context, **arguments)
        except oslo_messaging.ExpectedException as error:
            return signer.sign_error(request, error.exc_info[1])
        return signer.sign_result(request, result)
