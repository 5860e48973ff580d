# SPDX-License-Identifier: Apache-2.0
"""The loop that deletes old rows."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.periodic import repeat
from cyborg_lite.db import purging
from cyborg_lite.db.arqs import history, usages
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.change import MAX_DELETED
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import device_events
from cyborg_lite.db.jobs import operations
from cyborg_lite.db.providers import providers

LOG = log.getLogger(__name__)

_INTERVAL: Final = 3600.0  # seconds
_DAY: Final = 86400  # seconds
_MONTH: Final = 30  # days
# Seconds. A receiver challenges repetitions of calls that are older than five minutes;
# the rest allows for steps of the database clock.
_CALLS_KEPT: Final = 3600
_MAX_PROVIDERS: Final = 100  # per purge; one request each


@dataclass(frozen=True, slots=True)
class Retention:
    """Days for which rows are kept."""

    usage: int = 400
    device_events: int = 90
    cleanings: int = 400
    reconfigurations: int = 90
    operations: int = 7
    arq_history: int = 30


DEFAULT_RETENTION: Final = Retention()

_DeletesRecords = Callable[..., int]  # parameters: session, time


@dataclass(slots=True)
class Purger:
    """Deletes old rows every hour. Any number of conductors may run it."""

    database: Database
    placement: Placement
    stopping: threading.Event
    retention: Retention = DEFAULT_RETENTION
    # Id of the last record of traits that was checked.
    _last_record: int = field(default=0, init=False)

    def run(self) -> None:
        """Delete old rows until the stop event is set."""

        def choose_pause() -> float:
            # Conductors that start together do not purge together.
            return _INTERVAL * random.uniform(0.5, 1.5)

        repeat(self.purge, 'Deleting old rows', choose_pause, self.stopping)

    def purge(self) -> None:
        """Delete old rows once.

        :raises CyborgError: the database or Placement does not answer
        """
        read, write = self.database.read, self.database.write
        retention, now = self.retention, read(clock.read_time_before, 0)

        def delete(work: _DeletesRecords, days: float) -> int:
            return self._delete_records(work, now - timedelta(days))

        deleted = {
            'daemons': write(purging.delete_old_services, now - timedelta(_MONTH)),
            'failed jobs': write(purging.delete_old_failed_jobs, _MONTH * _DAY),
            'operations': delete(
                operations.delete_old_operations, retention.operations
            ),
            'ARQ events': sum(
                write(history.shorten_history, uuid)
                for uuid in read(history.list_long_histories)
            ),
            'histories of ARQs': delete(
                history.delete_old_histories, retention.arq_history
            ),
            'traits of providers': self._delete_provider_traits(),
            'received calls': delete(purging.delete_old_calls, _CALLS_KEPT / _DAY),
            'uses of units': write(usages.delete_old_periods, retention.usage * _DAY),
            'device events': write(
                device_events.delete_old_events,
                now - timedelta(retention.device_events),
            ),
            'cleans': delete(purging.delete_old_cleanings, retention.cleanings),
            'configuration changes': delete(
                purging.delete_old_reconfigurations, retention.reconfigurations
            ),
        }
        for name, count in deleted.items():
            if count:
                LOG.info('Deleted %d old rows of %s', count, name)

    def _delete_records(self, delete: _DeletesRecords, before: datetime) -> int:
        """Delete all old records, a bounded number in each transaction."""
        total = 0
        while not self.stopping.is_set():
            count = self.database.write(delete, before)
            total += count
            if count < MAX_DELETED:
                break
        return total

    def _delete_provider_traits(self) -> int:
        """Delete the next records of traits without a provider; return their number.

        A sync deletes the record with the provider. It cannot do so if somebody else
        has deleted the provider, as Nova does with the tree of a compute node.
        """
        records = self.database.read(
            purging.list_unused_provider_traits, self._last_record, _MAX_PROVIDERS
        )
        self._last_record = records[-1][0] if len(records) == _MAX_PROVIDERS else 0
        deleted = [
            uuid for _, uuid in records if not self.placement.find_provider(uuid)
        ]
        self.database.write(providers.delete_unused_traits, deleted)
        return len(deleted)
