# SPDX-License-Identifier: Apache-2.0
"""Caller of RPC methods that records the last call."""

from typing import Any

import oslo_messaging

from cyborg_lite.exceptions import ServiceUnavailable
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import Caller


class RecordingCaller(Caller):
    """Caller that records the last message and returns a fixed answer."""

    def __init__(self) -> None:
        # The constructor of the base class needs a message bus.
        self.method = ''
        self.arguments: dict[str, Any] = {}
        self.answer: Any = None
        self.error: Exception | None = None
        self.unsupported = ''  # version of a call that the server does not know

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
        self.method, self.arguments = method, arguments
        if since == self.unsupported:
            error = oslo_messaging.UnsupportedVersion(since, method)
            raise ServiceUnavailable(what='cyborg-lite-conductor') from error
        if self.error is not None:
            raise self.error
        return self.answer
