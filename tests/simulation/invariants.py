# SPDX-License-Identifier: Apache-2.0
"""Rules that hold after each transaction of the simulated cloud."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.simulation import scheduler
from tests.simulation.cloud import Cloud
from tests.simulation.hosts import CLASS

_BOUND: Final = """
    SELECT s.number, s.arq, s.instance, s.hostname, a.device_rp_uuid
    FROM history_steps s JOIN arqs a ON a.uuid = s.arq
    WHERE s.number > ? AND s.kind = 'arq' AND s.state = 'Bound'
"""
_HANDLES: Final = """
    SELECT d.hostname, p.rp_uuid, p.resource_class, h.clean_state
    FROM attach_handles h JOIN deployables p ON p.id = h.deployable_id
    JOIN devices d ON d.id = p.device_id WHERE h.arq_uuid = ?
"""
_UNITS: Final = """
    SELECT device_rp_uuid, count(*) FROM arqs
    WHERE instance_uuid = ? AND state = 'Bound' GROUP BY device_rp_uuid
"""


@dataclass
class Invariants:
    """Reads what the last transaction has changed; the cost is that of the change."""

    cloud: Cloud
    violations: list[str] = field(default_factory=list)
    _has_restored: bool = False
    _last: int = 0  # number of the last step that was checked
    _journals: dict[str, str] = field(default_factory=dict)  # by host
    _owners: dict[str, tuple[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._connection = sqlite3.connect(
            self.cloud.directory / 'database.sqlite', check_same_thread=False
        )
        self.cloud.watch(self.check)

    def restore(self) -> None:
        """Restore the database, and check only what holds after that."""
        self.cloud.restore_database()
        query = 'SELECT max(number) FROM history_steps'
        (self._last,) = self._connection.execute(query).fetchone()
        self._has_restored = True

    def check(self) -> None:
        """Check all rules and store the violations."""
        now = scheduler.find_scheduler().now
        for rule in (self._check_bound, self._check_journals):
            self.violations += [f'{now:.3f} {line}' for line in rule()]
        for cards in self.cloud.cards.values():
            self.violations += cards.violations
            cards.violations.clear()

    def _check_bound(self) -> Iterator[str]:
        """Check that a Bound ARQ is on its host, stored there, and allocated."""
        for number, arq, instance, host, provider in self._connection.execute(
            _BOUND, [self._last]
        ).fetchall():
            self._last = number
            cards = self.cloud.cards[host]
            has_booted = cards.booted_at > scheduler.find_scheduler().now - 60
            if arq not in cards.prepared.values() and not has_booted:
                yield f'{arq} is Bound, but not prepared on {host}'
            if arq not in self.cloud.read_journal(host):
                yield f'{arq} is Bound, but {host} has not stored it'
            (handle,) = self._connection.execute(_HANDLES, [arq]).fetchall() or [()]
            if handle != (host, provider, CLASS, 'clean'):
                yield f'{arq} is Bound on {host} to {provider}, but has {handle}'
            yield from self._check_units(instance, host)

    def _check_units(self, instance: str, host: str) -> Iterator[str]:
        consumer = self.cloud.placement.consumers.get(instance)
        if consumer is None:
            return
        units = Counter(dict(self._connection.execute(_UNITS, [instance]).fetchall()))
        providers = self.cloud.placement.providers
        for provider, number in units.items():
            node = providers[providers[provider].node.root_uuid].node.name
            if node != host:
                yield f'{instance} is on {host}, its provider {provider} on {node}'
            allocated = consumer.allocations.get(provider, {}).get(CLASS, 0)
            if number > allocated:
                yield (
                    f'the instance {instance} has {number} units of {provider} and '
                    f'{allocated} allocated'
                )

    def _check_journals(self) -> Iterator[str]:
        """Check that a stored handle changes its owner with a higher generation."""
        # A restored database uses generations again.
        for host in () if self._has_restored else self.cloud.cards:
            content = self.cloud.read_journal(host)
            if not content or content == self._journals.get(host):
                continue
            self._journals[host] = content
            for entry in json.loads(content)['content']:
                handle = entry['handle']
                owner = handle['generation'], handle['arq_uuid']
                before = self._owners.get(handle['uuid'], owner)
                if before[1] != owner[1] and before[0] >= owner[0]:
                    yield f'{host} stores {owner} of {handle["key"]} after {before}'
                self._owners[handle['uuid']] = owner
