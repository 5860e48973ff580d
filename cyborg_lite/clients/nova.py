# SPDX-License-Identifier: Apache-2.0
"""Client of Nova: sends events about ARQs and checks which instances exist."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import quote

from oslo_config import cfg
from oslo_log import log

from cyborg_lite.clients import session
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.arqs.instance_recovery import NovaInstance

LOG = log.getLogger(__name__)

# Up to this number, instances are requested one by one. For more of them, listing all
# instances needs fewer requests.
_MAX_SINGLE_REQUESTS: Final = 100
_HOST: Final = 'OS-EXT-SRV-ATTR:host'
_NODE: Final = 'OS-EXT-SRV-ATTR:hypervisor_hostname'
_VM_STATE: Final = 'OS-EXT-STS:vm_state'
_SPAWNED: Final = frozenset({'active', 'resized'})
_DELETED: Final = 'deleted'
_TASK: Final = 'OS-EXT-STS:task_state'
_PROFILE: Final = 'accel:device_profile'  # an extra spec
_PAGE_SIZE: Final = 1000  # the default limit of Nova
_ERROR_KEY: Final = 'itemNotFound'  # in each answer of Nova with status 404

MICROVERSION: Final = '2.82'
"""First microversion with the event ``accelerator-request-bound``."""


@dataclass(frozen=True, slots=True)
class BoundEvent:
    """The bind of an ARQ of an instance has succeeded or failed."""

    instance_uuid: str
    arq_uuid: str
    succeeded: bool


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """The response of Nova to one event. Every outcome is final; no event is resent.

    The code is 200 if Nova accepted the event; 422 if the instance has no host yet, in
    which case Nova queries the state of the ARQ later; 404 if the instance does not
    exist or is not visible to this service; 400 if the event is malformed; None if
    Nova is not configured.
    """

    event: BoundEvent
    code: int | None


class Nova:
    """Client of Nova. Events are dropped if Nova is not configured.

    Every method raises ServiceUnavailable if Nova does not answer, and RemoteError if
    Nova rejects the request, e.g. its credentials. A later call may succeed.
    """

    def __init__(self, remote: session.Remote | None) -> None:
        self._remote = remote
        self._drop_logged = False
        self._unknown_logged = False

    @classmethod
    def from_config(cls, conf: cfg.ConfigOpts) -> Self:
        """Create a client from section ``[nova]``, which may be empty."""
        remote = session.connect(conf, 'nova', 'Nova', MICROVERSION, _ERROR_KEY)
        return cls(remote)

    def post_events(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        """Send all events in one request. The call may be repeated."""
        if not events:
            return ()
        if self._remote is None:
            return self._drop(events)
        body = {'events': [_body(event) for event in events]}
        response = self._remote.send(
            'POST', '/os-server-external-events', body, accept=(404,)
        )
        if response.status_code == 404:
            # Some releases of Nova return 404 if none of the instances exists.
            codes = dict.fromkeys(map(_key, events), 404)
        else:
            codes = {
                (event['server_uuid'], event.get('tag')): event.get('code', 200)
                for event in self._remote.read(response)['events']
            }
        outcomes = tuple(
            EventOutcome(event, codes.get(_key(event), 200)) for event in events
        )
        self._log_outcomes(outcomes)
        return outcomes

    def find_missing_instances(self, uuids: Collection[str]) -> frozenset[str] | None:
        """Return the uuids that are not instances, or None if Nova is not configured.

        Stopped and shelved instances exist. The method first checks that instances of
        all projects are visible: otherwise Nova returns 404 for existing instances.

        :raises RemoteError: instances of other projects are not visible
        """
        remote = self._remote
        if remote is None:
            return None
        candidates = set(uuids)
        if len(candidates) <= _MAX_SINGLE_REQUESTS:
            _list_instances(remote, 1, None)
        else:
            marker: str | None = None
            while page := _list_instances(remote, _PAGE_SIZE, marker):
                candidates.difference_update(page)
                marker = page[-1]
        # The pages may lack instances that were created or moved during the listing.
        return frozenset(
            uuid for uuid in candidates if _find_instance(remote, uuid) is None
        )

    def is_placed(self, uuid: str) -> bool | None:
        """Check whether an instance is on a host, and may therefore use devices.

        :returns: None if Nova is not configured
        """
        if self._remote is None:
            return None
        instance = _find_instance(self._remote, uuid)
        # Only administrators receive the key. Without it, assume that there is a host.
        return instance is not None and instance.get(_HOST, 'hidden') is not None

    def is_spawned(self, uuid: str) -> bool | None:
        """Check whether an instance is spawned on its host and no task is running.

        :returns: None if Nova is not configured
        """
        if self._remote is None:
            return None
        instance = _find_instance(self._remote, uuid)
        if instance is None or instance.get(_TASK) is not None:
            return False
        return instance.get(_VM_STATE) in _SPAWNED

    def find_settled_node(self, uuid: str) -> str | None:
        """Return the compute node of an instance that no task changes.

        Nova stores the state ``deleted`` without a task before it deletes the ARQs, and
        then the allocation.

        :returns: None if the instance or the node is unknown, or without a Nova
        """
        instance = _find_instance(self._remote, uuid) if self._remote else None
        if instance is None or instance.get(_TASK) is not None:
            return None
        if instance.get(_VM_STATE) == _DELETED:
            return None
        node = instance.get(_NODE)
        return None if node is None else str(node)

    def describe_instance(self, uuid: str) -> NovaInstance | None:
        """Return an instance with what its flavor requests; None: it does not exist.

        :raises ServiceUnavailable: Nova does not answer, or is not configured
        """
        if self._remote is None:
            raise ServiceUnavailable(what='Nova')
        server: Mapping[str, Any] | None = _find_instance(self._remote, uuid)
        if server is None or server.get(_VM_STATE) == _DELETED:
            return None
        return NovaInstance(
            node=server.get(_NODE),
            project_id=server['tenant_id'],
            device_profile=server['flavor'].get('extra_specs', {}).get(_PROFILE),
            vm_state=server.get(_VM_STATE, ''),
            task=server.get(_TASK),
        )

    def is_migration(self, uuid: str) -> bool:
        """Check whether a consumer of Placement is one of the last 1,000 migrations.

        While an instance moves, its migration has the allocation on the old host.
        """
        if self._remote is None:
            return False
        path = f'/os-migrations?limit={_PAGE_SIZE}'
        body = self._remote.read(self._remote.send('GET', path))
        return any(migration['uuid'] == uuid for migration in body['migrations'])

    def _drop(self, events: Sequence[BoundEvent]) -> tuple[EventOutcome, ...]:
        if not self._drop_logged:
            self._drop_logged = True
            LOG.warning(
                'Section [nova] is empty: events to Nova are dropped. If Nova waits '
                'for these events, instances fail to boot at arq_binding_timeout. '
                'This message is logged once.'
            )
        for event in events:
            LOG.debug('Event dropped: %s', event)
        return tuple(EventOutcome(event, None) for event in events)

    def _log_outcomes(self, outcomes: tuple[EventOutcome, ...]) -> None:
        for outcome in outcomes:
            if outcome.code not in (200, 422):
                event = outcome.event
                LOG.info(
                    'Nova answered %s to the event of ARQ %s, instance %s',
                    outcome.code,
                    event.arq_uuid,
                    event.instance_uuid,
                )
        if self._unknown_logged or any(outcome.code != 404 for outcome in outcomes):
            return
        self._unknown_logged = True
        LOG.warning(
            'Nova returned 404 for all instances in a batch of events. The probable '
            'cause is that the user of [nova] has no admin role in its project: with '
            'only the role "service", Nova hides instances of other projects. This '
            'message is logged once.'
        )


def _key(event: BoundEvent) -> tuple[str, str | None]:
    return event.instance_uuid, event.arq_uuid


def _body(event: BoundEvent) -> dict[str, str]:
    """Return the event as JSON. The schema of Nova forbids additional keys."""
    return {
        'name': 'accelerator-request-bound',
        'server_uuid': event.instance_uuid,
        'tag': event.arq_uuid,
        'status': 'completed' if event.succeeded else 'failed',
    }


def _list_instances(
    remote: session.Remote, limit: int, marker: str | None
) -> list[str]:
    """Return uuids of instances of all projects, newest first."""
    after = '' if marker is None else f'&marker={quote(marker)}'
    path = f'/servers?all_tenants=1&limit={limit}{after}'
    body = remote.read(remote.send('GET', path))
    return [server['id'] for server in body['servers']]


def _find_instance(remote: session.Remote, uuid: str) -> Mapping[str, object] | None:
    """Return the instance in the format of Nova, or None if it does not exist."""
    response = remote.send('GET', f'/servers/{quote(uuid)}', accept=(404,))
    if response.status_code == 404:
        return None
    server: Mapping[str, object] = remote.read(response)['server']
    return server
