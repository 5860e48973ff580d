# SPDX-License-Identifier: Apache-2.0
"""The loop that deletes old rows."""

import random
import threading
from typing import Final

from oslo_log import log

from cyborg_lite.db import clock, purging
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError

LOG = log.getLogger(__name__)

_INTERVAL: Final = 3600.0  # seconds
_DAY: Final = 86400.0  # seconds
_SERVICES_AFTER: Final = 30 * _DAY


class Purger:
    """Deletes old rows every hour. Any number of conductors may run it."""

    def __init__(self, database: Database, stopping: threading.Event) -> None:
        self._database = database
        self._stopping = stopping

    def run(self) -> None:
        """Delete old rows until the stop event is set."""
        # Conductors that start together do not purge together.
        while not self._stopping.wait(_INTERVAL * random.uniform(0.5, 1.5)):
            try:
                self.purge()
            except CyborgError as error:
                LOG.error('Deleting old rows failed: %s', error.text)
            except Exception:  # a programming error must not end the thread
                LOG.exception('Deleting old rows failed')

    def purge(self) -> None:
        """Delete old rows once.

        :raises CyborgError: the database does not answer
        """
        read, write = self._database.read, self._database.write
        month, day = (
            read(clock.read_time_before, seconds) for seconds in (_SERVICES_AFTER, _DAY)
        )
        deleted = {
            'daemons': write(purging.delete_old_services, month),
            'programming jobs': write(purging.delete_old_program_jobs, day),
            'ARQ events': sum(
                write(purging.shorten_history, uuid)
                for uuid in read(purging.list_long_histories)
            ),
        }
        for name, count in deleted.items():
            if count:
                LOG.info('Deleted %d old rows of %s', count, name)
