# SPDX-License-Identifier: Apache-2.0
"""What agents tell of what happened while nobody listened: boots above all."""

from collections.abc import Callable, Sequence

from oslo_log import log

from cyborg_lite.db import host_events, recovery
from cyborg_lite.db.engine import Database
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import HostEvent, Outcome
from cyborg_lite.model.message_rules import check_events, check_outcome

LOG = log.getLogger(__name__)


class Recovery:
    """Everything here may be told again without another effect."""

    def __init__(
        self, database: Database, wake: Callable[[], None], event_deadline: int
    ) -> None:
        """:param wake: whoever runs jobs: there is a new one
        :param event_deadline: seconds for which Nova is tried to be told
        """
        self._database = database
        self._wake = wake
        self._event_deadline = event_deadline

    def settle(self, outcome: Outcome) -> tuple[HeldHandle, ...]:
        """Have requests follow what became of their handles.

        Returned is what the host should rebuild and said nothing of.

        :raises InvalidInput: the outcome cannot be stored
        """
        check_outcome(outcome)
        limit = self._event_deadline * 1000
        wanted = self._database.write(recovery.settle, outcome, limit)
        if outcome.lost:
            LOG.error('Host %s lost %d handles.', outcome.host, len(outcome.lost))
        if wanted:
            LOG.warning(
                'Host %s does not know of %d handles.', outcome.host, len(wanted)
            )
        self._wake()
        return wanted

    def hear(self, host: str, events: Sequence[HostEvent]) -> int:
        """Keep what is news; the number of the last event that was ever heard.

        :raises InvalidInput: they cannot be stored
        """
        check_events(host, events)
        last, new = self._database.write(host_events.hear, host, events)
        for event in new:
            if event.arq_uuid is None:
                LOG.info(
                    'Host %s: %s %s %s', host, event.kind, event.address, event.reason
                )
        return last
