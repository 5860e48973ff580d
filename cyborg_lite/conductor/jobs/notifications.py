# SPDX-License-Identifier: Apache-2.0
"""The loop that sends notifications.

One conductor at a time is the sender: it has a lease in the database. If it stops, the
lease ends and another conductor continues with the oldest notification. A notification
is deleted after the broker has confirmed it, so a killed sender may send up to one
batch again, with the same message ids.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from oslo_log import log

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import outbox
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.jobs import Owner
from cyborg_lite.rpc.notifications import NotificationBus

LOG = log.getLogger(__name__)

_INTERVAL: Final = 1.0  # seconds between two reads of an empty table
_LONGEST_PAUSE: Final = 30.0  # seconds while the broker is unreachable
_BATCH: Final = 100
_DROP_BATCH: Final = 1000

SENT: Final = 'sent'
FAILED: Final = 'failed'
DROPPED: Final = 'dropped'
"""Values of the label ``result``."""

Count = Callable[[str, int], None]  # result and number


@dataclass(slots=True)
class NotificationSender:
    """Sends the notifications in the order of their rows. All conductors may run it."""

    database: Database
    bus: NotificationBus
    owner: Owner  # name of the process, and duration of its lease
    max_backlog: int  # notifications that may wait
    count: Count = lambda _result, _number: None
    _failing: bool = field(default=False, init=False)

    def run(self, stopping: threading.Event) -> None:
        """Send notifications until the stop event is set."""
        pause = _INTERVAL
        while not stopping.wait(pause):
            try:
                pause = 0.0 if self.send_batch() else _INTERVAL
                if self._failing:
                    LOG.info('Notifications are sent again')
                self._failing = False
            except ServiceUnavailable as error:
                if not self._failing:
                    LOG.warning(
                        'Cannot send notifications, retrying: %s', error.full_text
                    )
                self._failing = True
                pause = min(_LONGEST_PAUSE, 2 * max(pause, _INTERVAL))
            except CyborgError as error:
                LOG.error('Sending notifications failed: %s', error.text)
                pause = _INTERVAL
            except Exception:  # a programming error must not end the thread
                LOG.exception('Sending notifications failed')
                pause = _LONGEST_PAUSE
        self._end_lease()

    def send_batch(self) -> bool:
        """Send the oldest notifications.

        :returns: True if more of them wait
        :raises ServiceUnavailable: the broker or the database is unreachable
        """
        # The clock is read first, so the lease ends no earlier in the database.
        until = time.monotonic() + self.owner.lease_ms / 1000
        if not self.database.write(outbox.renew_lease, self.owner):
            return False
        waiting = self.database.read(outbox.list_oldest, _BATCH)
        sent_ids: list[int] = []
        try:
            for notification in waiting:
                # After the end of the lease another conductor sends the rest.
                if time.monotonic() >= until:
                    break
                self.bus.send(notification)
                sent_ids.append(notification.id)
        except ServiceUnavailable:
            self.count(FAILED, 1)
            self._drop_excess()
            raise
        finally:
            self.database.write(outbox.delete_notifications, sent_ids)
            self.count(SENT, len(sent_ids))
        return len(waiting) == _BATCH

    def _drop_excess(self) -> None:
        """Delete the oldest notifications if more than ``max_backlog`` wait."""
        limit = self.max_backlog
        dropped = self.database.write(outbox.drop_oldest, limit, _DROP_BATCH)
        if dropped:
            self.count(DROPPED, dropped)
            LOG.error(
                'Dropped the %d oldest notifications: more than %d wait. Check the '
                'broker, or raise [notifications] max_backlog',
                dropped,
                limit,
            )

    def _end_lease(self) -> None:
        try:
            self.database.write(outbox.end_lease, self.owner)
        except CyborgError as error:
            LOG.info('Lease of the notifications not ended: %s', error.text)
