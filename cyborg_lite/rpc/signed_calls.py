# SPDX-License-Identifier: Apache-2.0
"""Calls whose requests and replies are signed."""

from collections.abc import Mapping
from typing import Any, Final

import oslo_messaging

from cyborg_lite.exceptions import CyborgError, ServiceUnavailable
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.keys import Peer
from cyborg_lite.rpc.replay import Challenged
from cyborg_lite.rpc.signing import KEY, Signer

# Each receiver process challenges a new sender once. Any of them may get a repetition.
_MAX_ATTEMPTS: Final = 64


def call_signed(
    signer: Signer,
    client: oslo_messaging.RPCClient,
    receiver: Peer,
    context: RequestContext,
    method: str,
    arguments: Mapping[str, Any],
) -> Any:
    """Send a signed request, and return the result in its signed reply.

    A challenge is answered by a repetition; the receiver has done nothing before it.

    :raises CyborgError: the error in the signed reply
    :raises MessageRefused: a signature is wrong or missing
    """
    values = context.to_wire()
    tokens: dict[str, str] = {}
    for _attempt in range(_MAX_ATTEMPTS):
        request = signer.sign(receiver, method, values, arguments, tokens)
        try:
            reply = client.call({**values, KEY: request.proof}, method, **arguments)
        except CyborgError as error:
            # Signed errors are replies. Only an operator can use this text.
            if not signer.is_required:
                raise
            raise signer.refuse('unsigned error', str(receiver)) from error
        try:
            return signer.read_reply(request, reply)
        except Challenged as challenge:
            tokens[challenge.receiver] = challenge.token
    raise ServiceUnavailable(what=f'cyborg-lite-{receiver.role}')
