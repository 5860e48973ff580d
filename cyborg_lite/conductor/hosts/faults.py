# SPDX-License-Identifier: Apache-2.0
"""Faults of daemons that this conductor sees, for the list of what needs attention."""

import itertools
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from cyborg_lite.conductor.periodic import repeat
from cyborg_lite.db.attention import list_profile_faults
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.attention import MAX_ITEMS, AttentionKind
from cyborg_lite.model.hosts.services import AGENT, Fault, FaultKey
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.interface import Agents
from cyborg_lite.rpc.security.keys import Peer

_WRITE_INTERVAL: Final = 2.0  # seconds
_CHECK_INTERVAL: Final = 30.0  # between checks of profiles, which read all units
_MAX_HOST: Final = 255  # characters
# Reasons for which a conductor refuses all messages of a daemon.
_BAD_KEY: Final = frozenset({'wrong signature', 'no key'})


def count_writes(lifetime: float) -> int:
    """Return the writes from one check of the device profiles to the next one.

    A fault of a profile must not end between two checks.

    :param lifetime: of a fault, in seconds
    """
    return max(1, int(min(_CHECK_INTERVAL, lifetime / 3) / _WRITE_INTERVAL))


@dataclass(slots=True)
class FaultLog:
    """Collects faults, and writes them in batches. Thread-safe."""

    database: Database
    lifetime: float  # seconds after which a fault that is not seen again has ended
    stopping: threading.Event
    agents: Agents | None = None  # None: not connected, nobody is warned
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    # Reasons of the faults that are not written yet; empty: the fault has ended.
    _reasons: dict[FaultKey, str] = field(default_factory=dict, init=False)
    # Of which the first agent was warned.
    _warnings: set[Fault] = field(default_factory=set, init=False)

    def note(self, kind: AttentionKind, host: str, name: str, reason: str) -> None:
        """Note that a fault exists now.

        :param reason: empty: the fault has ended
        """
        key = FaultKey(kind, host, name)
        with self._lock:
            if key in self._reasons or len(self._reasons) < MAX_ITEMS:
                self._reasons[key] = reason

    def note_refusal(self, reason: str, sender: str) -> None:
        """Note a daemon whose messages are refused.

        :param sender: role and host, as the message states them
        """
        role, _, host = sender.partition(':')
        is_daemon = role in ('agent', 'api') and len(host) <= _MAX_HOST
        if is_daemon and reason in _BAD_KEY:
            kind, name = AttentionKind.NOT_READY, f'cyborg-lite-{role}'
            self.note(kind, host, name, f'Its messages are refused: {reason}.')

    def note_key(self, sender: Peer, is_newest: bool) -> None:
        """Note whether a daemon signs with its newest key."""
        reason = (
            '' if is_newest else 'Its key ends with `drop-secret`: install the new.'
        )
        name, kind = f'cyborg-lite-{sender.role}', AttentionKind.OUTDATED_KEY
        self.note(kind, sender.host, name, reason)

    def note_duplicate(self, host: str, reason: str) -> None:
        """Note a second agent with the name of a host, and warn the first one later."""
        self.note(AttentionKind.DUPLICATE_AGENT, host, AGENT, reason)

    def note_profiles(self) -> None:
        """Note the device profiles that no free unit serves.

        The time of the first note is the time since when that is so.
        """
        for item in self.database.read(list_profile_faults):
            self.note(item.kind, '', item.subject_id, item.reason)

    def run(self) -> None:
        """Write the faults until the stop event is set."""
        writes = itertools.count()
        per_check = count_writes(self.lifetime)

        def write() -> None:
            if next(writes) % per_check == 0:
                self.note_profiles()
            self.write()

        subject = 'Writing the faults of daemons'
        repeat(write, subject, lambda: _WRITE_INTERVAL, self.stopping)

    def write(self) -> None:
        """Write what was noted since the last call, and delete what has ended."""
        with self._lock:
            reasons, self._reasons = self._reasons, {}
        current = [Fault(*key, reason) for key, reason in reasons.items() if reason]
        former = [key for key, reason in reasons.items() if not reason]
        self.database.write(services.record_faults, current, former, self.lifetime)
        for fault in current:
            is_duplicate = fault.kind == AttentionKind.DUPLICATE_AGENT
            if is_duplicate and self.agents is not None and fault not in self._warnings:
                self._warnings.add(fault)
                with suppress(HostAway):
                    self.agents.warn(daemon_context(), fault.host, fault.reason)
