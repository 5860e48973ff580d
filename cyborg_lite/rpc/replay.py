# SPDX-License-Identifier: Apache-2.0
"""Detection of repeated messages, without clocks.

Each process that sends messages chooses a random epoch and numbers its messages. Each
process that receives messages remembers which numbers of an epoch it has received.

A receiver that does not know an epoch challenges the sender: the sender repeats the
message with a token of this receiver. A recorded message has no valid token for a
receiver that has not received it before.
"""

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

_WINDOW: Final = 4096  # numbers below the highest one that are still accepted
_MAX_EPOCHS: Final = 16384


class Challenged(Exception):  # not an error
    """The sender must repeat the message with a token."""

    def __init__(self, receiver: str, token: str) -> None:
        super().__init__(receiver)
        self.receiver = receiver
        self.token = token


class _Window:
    """The received numbers of one epoch."""

    def __init__(self) -> None:
        self._highest = 0
        self._received = 0  # bit n: the number `highest - n` was received

    def accept(self, number: int) -> bool:
        """Return True if the number was not received before."""
        distance = number - self._highest
        if distance > 0:
            shifted = 0 if distance > _WINDOW else self._received << distance
            self._received = (shifted | 1) & ((1 << _WINDOW) - 1)
            self._highest = number
            return True
        bit = 1 << -distance
        if -distance >= _WINDOW or self._received & bit:
            return False
        self._received |= bit
        return True


class ReplayGuard:
    """The received messages of one process. Thread-safe."""

    def __init__(self, max_epochs: int = _MAX_EPOCHS) -> None:
        """Choose a random name and a random secret.

        :param max_epochs: the epoch of the earliest message is forgotten above it
        """
        self._max_epochs = max_epochs
        self._name = secrets.token_urlsafe(6)
        self._secret = secrets.token_bytes(32)
        self._guard = threading.Lock()
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()
        self._forgotten = 0  # number of epochs; earlier tokens become invalid

    def accept(
        self, sender: str, epoch: str, number: int, tokens: Mapping[str, str]
    ) -> bool:
        """Return True if the message was not received before.

        :param tokens: by name of the receiver
        :raises Challenged: the epoch is not known, and this receiver gave no token
        """
        with self._guard:
            window = self._windows.get((sender, epoch))
            if window is None:
                token = self._create_token(sender, epoch)
                if not hmac.compare_digest(tokens.get(self._name, ''), token):
                    raise Challenged(self._name, token)
                window = self._add(sender, epoch)
            return window.accept(number)

    def _add(self, sender: str, epoch: str) -> _Window:
        if len(self._windows) >= self._max_epochs:
            self._windows.popitem(last=False)
            self._forgotten += 1
        window = self._windows[sender, epoch] = _Window()
        return window

    def _create_token(self, sender: str, epoch: str) -> str:
        text = f'{sender} {epoch} {self._forgotten}'.encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:32]
