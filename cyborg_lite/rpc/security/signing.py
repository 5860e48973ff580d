# SPDX-License-Identifier: Apache-2.0
"""Signatures of messages and of their replies.

A request carries its signature in the context, next to the request id. The signature
covers sender, topic, method, context and arguments. The signature of a reply covers the
signature of its request, so that no other reply fits.
"""

import base64
import hashlib
import hmac
import itertools
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from oslo_log import log

from cyborg_lite import errors
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import MessageRefused
from cyborg_lite.rpc.security.keys import Keys, Peer, Role
from cyborg_lite.rpc.security.replay import Challenged, ReplayGuard


# Any: values of JSON.
def dump_error(error: CyborgError) -> list[Any]:
    """Return an error as a JSON list."""
    fields = {
        name: value if isinstance(value, int | float | str | list) else str(value)
        for name, value in error.kwargs.items()
    }
    return [type(error).__name__, fields]


def load_error(value: Any) -> CyborgError:
    """Return the error of a reply; CyborgError if its class is not known."""
    name, fields = value
    kinds = (getattr(import_module(module), name, None) for module in errors.MODULES)
    kind = next(filter(None, kinds), None)
    if not (isinstance(kind, type) and issubclass(kind, CyborgError)):
        return CyborgError()
    try:
        return kind(**fields)
    except LookupError:  # the text of this release has other fields
        return CyborgError()


LOG = log.getLogger(__name__)

KEY: Final = 'signature'  # in the context of a request

# Keys that the library adds to the context on the way.
_TRANSPORT_KEYS: Final = frozenset(
    {KEY, 'client_timeout', 'traceparent', 'tracestate', 'baggage'}
)
_MAC_BYTES: Final = 16
_MAX_LOGGED: Final = 1000
_MAX_SENDER: Final = 300  # characters: a role and the name of a host
FIRST_MAC: Final = 'first'
"""Key among the tokens of a repetition: the MAC of the request that was challenged."""
_REPLY: Final = 'signed_reply'
_RESULT, _ERROR, _CHALLENGE = 'result', 'error', 'challenge'


@dataclass(frozen=True, slots=True)
class Request:
    """A signed request, to which a reply belongs."""

    sender: Peer
    epoch: str
    number: int
    tokens: Mapping[str, str]
    key: bytes
    mac: str

    @property
    def call(self) -> str:
        """The identity of the call, which its repetitions after challenges share."""
        return self.tokens.get(FIRST_MAC, self.mac)

    @property
    def short_proof(self) -> str:
        """The signature of a request without tokens, as text."""
        return f'{self.sender} {self.epoch} {self.number} {self.mac}'

    @property
    def proof(self) -> list[Any]:
        """The signature in the context of the request."""
        proof = [str(self.sender), self.epoch, self.number, self.mac]
        return [*proof, dict(self.tokens)] if self.tokens else proof


class Signer:
    """Signs and checks the messages of one process. Thread-safe."""

    def __init__(
        self,
        own: Peer,
        keys: Keys,
        *,
        is_required: bool = True,
        note_refusal: Callable[[str, str], None] = lambda _reason, _sender: None,
    ) -> None:
        """Choose the random epoch of this process.

        :param own: this daemon
        :param is_required: False: messages without a signature are accepted
        :param note_refusal: called with reason and sender of each refused message; if
            it has no valid signature, the sender is what it states
        """
        self.is_required = is_required
        self._own = own
        self._keys = keys
        self.note_refusal = note_refusal
        self._epoch = secrets.token_urlsafe(8)
        self._numbers = itertools.count(1)
        self._guard = ReplayGuard()
        self._logged: set[str] = set()
        self._outdated: set[Peer] = set()  # logged
        # Called for verified messages with the sender, and False if its key is about to
        # be replaced. A sender with its newest key is noted once, after an older key.
        self.note_key: Callable[[Peer, bool], None] = lambda _sender, _is_newest: None

    @property
    def is_conductor(self) -> bool:
        """Check whether this daemon is a conductor."""
        return self._own.role is Role.CONDUCTOR

    # --- requests ---

    # Any, here and below: values of JSON.
    def sign(
        self,
        receiver: Peer,
        method: str,
        context: Mapping[str, Any],
        arguments: Mapping[str, Any],
        tokens: Mapping[str, str],
    ) -> Request:
        """Sign a request.

        :param receiver: host empty: any conductor
        :param tokens: by receiver, from earlier challenges
        """
        epoch, number = self._epoch, next(self._numbers)
        is_own = receiver.role is Role.CONDUCTOR
        key = self._list_keys(self._own if is_own else receiver)[0]
        signed = [str(self._own), receiver.role, epoch, number, dict(tokens), method]
        mac = _compute_mac(key, [*signed, dict(context), dict(arguments)])
        return Request(self._own, epoch, number, dict(tokens), key, mac)

    def verify(
        self, method: str, context: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> Request | None:
        """Check the signature of a received request.

        :param context: as received
        :returns: None if it is not signed, and that is accepted
        :raises MessageRefused: the signature is wrong or missing
        """
        proof = context.get(KEY)
        if proof is None and not self.is_required:
            return None
        try:
            sender, epoch, number, mac, tokens = _parse_proof(proof)
        except (TypeError, ValueError):
            raise self.refuse('unsigned', 'an unknown sender') from None
        if not self.is_conductor and sender.role is not Role.CONDUCTOR:
            raise self.refuse('wrong sender', str(sender))
        keys = self._list_keys(sender if self.is_conductor else self._own)
        values = {k: v for k, v in context.items() if k not in _TRANSPORT_KEYS}
        signed = [str(sender), self._own.role, epoch, number, tokens, method]
        signed = [*signed, values, dict(arguments)]
        for key in keys:
            if _is_same(mac, _compute_mac(key, signed)):
                self._note_age(sender, is_newest=key == keys[-1])
                return Request(sender, epoch, number, tokens, key, mac)
        raise self.refuse('wrong signature', str(sender))

    def accept(self, request: Request) -> None:
        """Check that a verified request is received for the first time.

        :raises MessageRefused: it was received before
        :raises Challenged: the sender must repeat the request with a token
        """
        sender = str(request.sender)
        if not self._guard.accept(
            sender, request.epoch, request.number, request.tokens
        ):
            raise self.refuse('repeated', sender)

    def refuse(self, reason: str, sender: str) -> MessageRefused:
        """Count and log a refused message; return the error.

        :param reason: one of few; it is a label of the metric
        """
        self.note_refusal(reason, sender)
        entry = f'{reason} {sender}'
        if entry not in self._logged and len(self._logged) < _MAX_LOGGED:
            self._logged.add(entry)
            LOG.warning(
                'Refusing messages of %s: %s. Further ones are not logged, but counted '
                'by the metric cyborg_lite_refused_messages_total.',
                sender,
                reason,
            )
        return MessageRefused(reason=f'{reason}, from {sender}')

    def _list_keys(self, peer: Peer) -> Sequence[bytes]:
        keys = self._keys.list_keys(peer)
        if not keys:
            raise self.refuse('no key', str(peer))
        return keys

    def _note_age(self, sender: Peer, *, is_newest: bool) -> None:
        """Log once that a sender does not sign with its newest key, for conductors."""
        if not self.is_conductor or sender.role is Role.CONDUCTOR:
            return
        if not is_newest or sender in self._outdated:
            self.note_key(sender, is_newest)
        if is_newest:
            self._outdated.discard(sender)
        elif sender not in self._outdated:
            self._outdated.add(sender)
            LOG.warning(
                'Messages of %s have an old key: install its new key, see '
                '`cyborg-lite-manage agent`.',
                sender,
            )

    # --- replies ---

    def read_reply(self, request: Request, reply: Any) -> Any:
        """Return the result in a reply.

        :raises Challenged: the request must be repeated with a token
        :raises CyborgError: the error in the reply
        :raises MessageRefused: the signature is wrong or missing
        """
        try:
            kind, value, mac = reply[_REPLY]
        except (TypeError, LookupError, ValueError):
            if not self.is_required:
                return reply
            raise self.refuse('unsigned reply', 'an unknown sender') from None
        expected = _compute_mac(request.key, [_REPLY, request.mac, kind, value])
        if not _is_same(str(mac), expected):
            raise self.refuse('wrong signature of a reply', 'an unknown sender')
        if kind == _CHALLENGE:
            receiver, token = value
            raise Challenged(receiver, token)
        if kind == _ERROR:
            raise load_error(value)
        return value


def sign_reply(request: Request, answer: Any) -> Any:
    """Return the reply with a result, an error or a challenge."""
    kind, value = _RESULT, answer
    if isinstance(answer, CyborgError):
        kind, value = _ERROR, dump_error(answer)
    elif isinstance(answer, Challenged):
        kind, value = _CHALLENGE, [answer.receiver, answer.token]
    mac = _compute_mac(request.key, [_REPLY, request.mac, kind, value])
    return {_REPLY: [kind, value, mac]}


def _parse_proof(proof: Any) -> tuple[Peer, str, int, str, dict[str, str]]:
    """Return sender, epoch, number, MAC and tokens.

    :raises TypeError: the proof is malformed
    :raises ValueError: the proof is malformed
    """
    if isinstance(proof, str):
        sender, epoch, text, mac = proof.rsplit(' ', 3)
        proof = (sender, epoch, int(text), mac)
    sender, epoch, number, mac, *further = proof
    tokens = further[0] if further else {}
    if not isinstance(sender, str) or not isinstance(tokens, dict):
        raise TypeError
    # The sender is logged before its signature is checked.
    if len(sender) > _MAX_SENDER or not sender.isprintable():
        raise ValueError
    role, _, host = sender.partition(':')
    texts = (epoch, mac, *tokens, *tokens.values())
    if not all(isinstance(text, str) and text.isascii() for text in texts):
        raise TypeError
    if not isinstance(number, int) or number < 1:
        raise TypeError
    return Peer(Role(role), host), epoch, number, mac, tokens


def _is_same(mac: str, expected: str) -> bool:
    # The library compares only texts in ASCII.
    return mac.isascii() and hmac.compare_digest(mac, expected)


def _compute_mac(key: bytes, values: list[Any]) -> str:
    text = json.dumps(values, sort_keys=True, separators=(',', ':'))
    digest = hmac.digest(key, text.encode(), hashlib.sha256)
    return base64.b64encode(digest[:_MAC_BYTES]).decode().rstrip('=')
