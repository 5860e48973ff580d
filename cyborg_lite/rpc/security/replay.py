# SPDX-License-Identifier: Apache-2.0
"""Detection of repeated messages, without wall clocks.

Each process that sends messages chooses a random epoch and numbers its messages. Each
process that receives messages remembers which numbers of an epoch it has received.

A receiver that does not know an epoch challenges the sender: the sender repeats the
message with a token of this receiver. A recorded message has no valid token for a
receiver that has not received it before.

Several conductors take calls of one sender, and each of them receives some of the
numbers. A receiver challenges each sender again after a period, and from then on also
every call with a lower number. Within that period the database knows the calls that
have changed it; see ``Database.once``.
"""

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

_WINDOW: Final = 4096  # numbers below the highest one that are still accepted
_MAX_EPOCHS: Final = 16384
# Seconds. A shorter period costs more calls: each challenge repeats one.
_CHALLENGE_PERIOD: Final = 300.0
# Seconds. A token is valid for one to two of them, longer than a call takes.
_TOKEN_PERIOD: Final = 60.0


class Challenged(Exception):  # not an error
    """The sender must repeat the message with a token."""

    def __init__(self, receiver: str, token: str) -> None:
        super().__init__(receiver)
        self.receiver = receiver
        self.token = token


class _Window:
    """The received numbers of one epoch, since its last challenge."""

    def __init__(self) -> None:
        self._highest = 0
        self._received = 0  # bit n: the number `highest - n` was received
        self._lowest = 0  # calls below it were sent before the last challenge
        self._expires_at = 0.0

    def needs_token(self, number: int, now: float) -> bool:
        """Check whether a call may be older than the last challenge."""
        return now >= self._expires_at or number < self._lowest

    def renew(self, number: int, now: float) -> None:
        """Store that the call with this number answers a challenge."""
        if now >= self._expires_at:
            self._lowest = max(self._lowest, number)
            self._expires_at = now + _CHALLENGE_PERIOD

    def accept(self, number: int) -> bool:
        """Return True if the number was not received before."""
        distance = number - self._highest
        if distance > 0:
            shifted = 0 if distance > _WINDOW else self._received << distance
            self._received = (shifted | 1) & ((1 << _WINDOW) - 1)
            self._highest = number
            return True
        # Checked first: a shift by a huge distance would use up the memory.
        if -distance >= _WINDOW:
            return False
        bit = 1 << -distance
        if self._received & bit:
            return False
        self._received |= bit
        return True


class ReplayGuard:
    """The received messages of one process. Thread-safe."""

    def __init__(
        self,
        max_epochs: int = _MAX_EPOCHS,
        read_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Choose a random name and a random secret.

        :param max_epochs: the epoch of the earliest message is forgotten above it
        :param read_clock: returns seconds of a clock that never steps
        """
        self._max_epochs = max_epochs
        self._read_clock = read_clock
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
        :raises Challenged: the message may be from before the last challenge, and has
            no valid token of this receiver
        """
        now = self._read_clock()
        with self._guard:
            window = self._windows.get((sender, epoch))
            if window is None or window.needs_token(number, now):
                self._check_token(sender, epoch, tokens.get(self._name, ''), now)
                window = window or self._add(sender, epoch)
                window.renew(number, now)
            return window.accept(number)

    def _check_token(self, sender: str, epoch: str, token: str, now: float) -> None:
        """Check a token.

        :raises Challenged: it is not valid; the exception has a valid one
        """
        period = int(now // _TOKEN_PERIOD)
        valid_tokens = [
            self._create_token(sender, epoch, index) for index in (period, period - 1)
        ]
        if not any(hmac.compare_digest(token, valid) for valid in valid_tokens):
            raise Challenged(self._name, valid_tokens[0])

    def _add(self, sender: str, epoch: str) -> _Window:
        if len(self._windows) >= self._max_epochs:
            self._windows.popitem(last=False)
            self._forgotten += 1
        window = self._windows[sender, epoch] = _Window()
        return window

    def _create_token(self, sender: str, epoch: str, period: int) -> str:
        text = f'{sender} {epoch} {self._forgotten} {period}'.encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:32]
