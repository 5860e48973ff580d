# SPDX-License-Identifier: Apache-2.0
"""Nova: told how the requests of its instances ended, asked which of them there are."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote

from oslo_config import cfg
from oslo_log import log

from cyborg_lite.clients import session

LOG = log.getLogger(__name__)

_ONE_BY_ONE: Final = 100
"""So many servers are asked for singly; of more, all that there are is the lesser work.
"""
_HOST: Final = 'OS-EXT-SRV-ATTR:host'
_PAGE: Final = 1000  # the most that Nova gives by default

MICROVERSION: Final = '2.82'
"""The first that knows ``accelerator-request-bound``."""


@dataclass(frozen=True, slots=True)
class BoundEvent:
    """One request of one instance has come to its end, good or bad."""

    instance_uuid: str
    arq_uuid: str
    succeeded: bool


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """What became of an event; every outcome is final, none is to be sent again.

    200: Nova took it. 422: the instance has no host yet, and Nova will look at the
    state itself. 404: Nova does not know the instance, or does not let us see it.
    400: Nova finds it malformed. None: there is no Nova to send it to.
    """

    event: BoundEvent
    code: int | None


class Nova:
    """Nova as the conductor needs it; without a ``remote`` events are dropped."""

    def __init__(self, remote: session.Remote | None) -> None:
        self._remote = remote
        self._said_dropped = False
        self._said_unknown = False

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts) -> Self:
        """By the section ``[nova]``; one left empty makes a Nova that drops."""
        return cls(session.connect(conf, 'nova', 'Nova', MICROVERSION))

    def post_events(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        """Send all events in one request; sending them again does no harm.

        :raises ServiceUnavailable: Nova did not answer; to be tried again
        :raises RemoteError: Nova refuses the request, e.g. our credentials
        """
        if not events:
            return ()
        if self._remote is None:
            return self._drop(events)
        body = {'events': [_body(event) for event in events]}
        answer = self._remote.send(
            'POST', '/os-server-external-events', body, accept=(404,)
        )
        if answer.status_code == 404:
            # Some releases answer so when they know none of the instances.
            codes = dict.fromkeys(map(_identity, events), 404)
        else:
            codes = {
                (said['server_uuid'], said.get('tag')): said.get('code', 200)
                for said in answer.json()['events']
            }
        outcomes = tuple(
            EventOutcome(event, codes.get(_identity(event), 200)) for event in events
        )
        self._say(outcomes)
        return outcomes

    def missing(self, uuids: Collection[str]) -> frozenset[str] | None:
        """Those among ``uuids`` that are no servers, not even stopped or shelved ones.

        None: there is no Nova to ask. That all may be seen is tried first: to a user
        who is no admin the servers of others are not there.

        :raises ServiceUnavailable: Nova did not answer
        :raises RemoteError: we may not see all servers
        """
        remote = self._remote
        if remote is None:
            return None
        doubtful = set(uuids)
        if len(doubtful) <= _ONE_BY_ONE:
            _page(remote, 1, None)
        else:
            marker: str | None = None
            while page := _page(remote, _PAGE, marker):
                doubtful.difference_update(page)
                marker = page[-1]
        # What is new, or moved between two pages, is not in any of them.
        return frozenset(uuid for uuid in doubtful if _server(remote, uuid) is None)

    def is_placed(self, uuid: str) -> bool | None:
        """Whether a server is on some host, and may use what that gave it.

        None: there is no Nova to ask.

        :raises ServiceUnavailable: Nova did not answer
        :raises RemoteError: Nova refuses
        """
        if self._remote is None:
            return None
        server = _server(self._remote, uuid)
        # The key is there for admins alone; who cannot tell must not say no.
        return server is not None and server.get(_HOST, 'hidden') is not None

    def _drop(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        if not self._said_dropped:
            self._said_dropped = True
            LOG.warning(
                'No [nova] section in the configuration: events for Nova are dropped, '
                'and a Nova that waits for them fails the boot after its timeout. '
                'Said once.'
            )
        for event in events:
            LOG.debug('Event dropped: %s', event)
        return tuple(EventOutcome(event, None) for event in events)

    def _say(self, outcomes: tuple[EventOutcome, ...]) -> None:
        for outcome in outcomes:
            if outcome.code not in (200, 422):
                LOG.info('Nova answered %s to %s', outcome.code, outcome.event)
        if self._said_unknown or any(outcome.code != 404 for outcome in outcomes):
            return
        self._said_unknown = True
        LOG.warning(
            'Nova knows none of the instances that it was sent events for. Most likely '
            'the user of [nova] has no admin role in its project: with only the role '
            '"service" Nova hides the servers of other projects. Said once.'
        )


def _identity(event: BoundEvent) -> tuple[str, str | None]:
    return event.instance_uuid, event.arq_uuid


def _body(event: BoundEvent) -> dict[str, str]:
    """Exactly these keys: the schema of Nova forbids others."""
    return {
        'name': 'accelerator-request-bound',
        'server_uuid': event.instance_uuid,
        'tag': event.arq_uuid,
        'status': 'completed' if event.succeeded else 'failed',
    }


def _page(remote: session.Remote, limit: int, marker: str | None) -> list[str]:
    """The uuids of servers of all projects, newest first."""
    after = '' if marker is None else f'&marker={quote(marker)}'
    path = f'/servers?all_tenants=1&limit={limit}{after}'
    return [one['id'] for one in remote.send('GET', path).json()['servers']]


def _server(remote: session.Remote, uuid: str) -> Mapping[str, object] | None:
    """Nova's own description; None: there is no such server."""
    answer = remote.send('GET', f'/servers/{quote(uuid)}', accept=(404,))
    if answer.status_code == 404:
        return None
    server: Mapping[str, object] = answer.json()['server']
    return server
