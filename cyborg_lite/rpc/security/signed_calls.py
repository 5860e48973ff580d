# SPDX-License-Identifier: Apache-2.0
"""Calls whose requests and replies are signed."""

from collections.abc import Mapping
from typing import Any, Final

import oslo_messaging

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import MessageRefused, ServiceUnavailable
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.methods import HOST, SHORT_METHODS
from cyborg_lite.rpc.security.keys import Peer
from cyborg_lite.rpc.security.replay import Challenged
from cyborg_lite.rpc.security.signing import FIRST_MAC, KEY, Signer

# Each receiver process challenges a new sender once. Any of them may get a repetition.
_MAX_ATTEMPTS: Final = 64


class SignedCaller:
    """Sends signed requests to one receiver."""

    def __init__(
        self, signer: Signer, client: oslo_messaging.RPCClient, receiver: Peer
    ) -> None:
        """Store the arguments.

        :param receiver: host empty: any conductor
        """
        self._signer = signer
        self._client = client
        self._receiver = receiver

    # Any: values of JSON.
    def call(self, context: RequestContext, method: str, /, **arguments: Any) -> Any:
        """Send a signed request, and return the result in its signed reply.

        A challenge is answered by a repetition; the receiver has done nothing before
        it. The repetition names the first request: another conductor must not serve
        that one as a second call.

        :raises CyborgError: the error in the signed reply
        :raises MessageRefused: a signature is wrong or missing
        """
        if method in SHORT_METHODS:
            del arguments[HOST]
        values = context.to_wire()
        tokens: dict[str, str] = {}
        for _attempt in range(_MAX_ATTEMPTS):
            request = self._signer.sign(
                self._receiver, method, values, arguments, tokens
            )
            is_plain = method in SHORT_METHODS and not tokens
            proof = request.short_proof if is_plain else request.proof
            reply = self._send({**values, KEY: proof}, method, arguments)
            try:
                return self._signer.read_reply(request, reply)
            except Challenged as challenge:
                tokens.setdefault(FIRST_MAC, request.mac)
                tokens[challenge.receiver] = challenge.token
        raise ServiceUnavailable(what=f'cyborg-lite-{self._receiver.role}')

    def cast(self, context: RequestContext, method: str, /, **arguments: Any) -> None:
        """Send a signed request of a short method that gets no reply.

        A receiver that would challenge it drops it.
        """
        if method in SHORT_METHODS:
            del arguments[HOST]
        values = context.to_wire()
        request = self._signer.sign(self._receiver, method, values, arguments, {})
        self._client.cast({**values, KEY: request.short_proof}, method, **arguments)

    def _send(
        self, context: dict[str, Any], method: str, arguments: Mapping[str, Any]
    ) -> Any:
        try:
            return self._client.call(context, method, **arguments)
        except CyborgError as error:
            # Signed errors are replies. The receiver cannot sign a refusal, and an
            # operator needs its reason.
            if not self._signer.is_required or isinstance(error, MessageRefused):
                raise
            raise self._signer.refuse('unsigned error', str(self._receiver)) from error
