# SPDX-License-Identifier: Apache-2.0
"""Client of an API that performs actions and records its operations."""

import http.client
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from devstack.launcher.rest import Answer
from tests.chaos.history.cluster import Cluster
from tests.chaos.history.records import Kind, Operation
from tests.chaos.history.schedule import Action, ActionKind
from tests.servers.stack import PROJECT

_ARQS: Final = '/v2/accelerator_requests'
_WAIT: Final = 8.0  # seconds that a worker waits for an event at most
_POLL: Final = 0.05  # seconds
_FIELDS: Final = ('/hostname', '/device_rp_uuid', '/instance_uuid')


@dataclass
class Slot:
    """ARQs of one instance that two workers use."""

    count: int = 1  # of the ARQs that are created together
    arqs: tuple[str, ...] = ()
    instance: str = ''  # of the last bind; empty: none


@dataclass
class Recorder:
    """Operations of all workers."""

    operations: list[Operation] = field(default_factory=list)


class Client:
    """Client as Nova and an operator are; it does not repeat requests."""

    def __init__(self, cluster: Cluster, recorder: Recorder) -> None:
        self._cluster = cluster
        self._recorder = recorder
        self._operations: dict[ActionKind, Callable[[Action, Slot], None]] = {
            ActionKind.BIND: self._bind,
            ActionKind.REBIND: self._rebind,
            ActionKind.UNBIND: self._unbind,
            ActionKind.DELETE: self._delete,
            ActionKind.DELETE_INSTANCE: self._delete_instance,
            ActionKind.READ: self._ignore,
            ActionKind.EDIT_PROFILE: self._edit_profile,
            ActionKind.SWITCH_DEVICE: self._switch_device,
            ActionKind.CHANGE_REPORT: self._change_report,
        }

    def perform(self, action: Action, slot: Slot) -> None:
        """Perform an action on the ARQs of a slot, which are created if it is empty."""
        if not slot.arqs:
            self._create(action, slot)
        arqs = slot.arqs
        if arqs:
            self._operations[action.kind](action, slot)
            self._read(action, arqs)

    # --- operations on ARQs ---

    def _create(self, action: Action, slot: Slot) -> None:
        start = time.time()
        body = {'device_profile_name': self._cluster.profiles[slot.count]}
        answer = self._ask(action, 'POST', _ARQS, body)
        if answer is not None and answer.status == 201:
            arqs = tuple(arq['uuid'] for arq in answer.body['arqs'])
            self._record(Kind.CREATE, arqs, start, answer)
            slot.arqs, slot.instance = arqs, ''

    def _bind(self, action: Action, slot: Slot) -> None:
        arqs, instance = slot.arqs, str(uuid.uuid4())
        if not arqs or not self._allocate(action.host, instance, len(arqs)):
            return
        host, provider = self._cluster.hosts[action.host]
        values = dict(zip(_FIELDS, (host, provider, instance), strict=True))
        patch = [
            {'path': path, 'op': 'add', 'value': value}
            for path, value in values.items()
        ]
        previous, slot.instance = slot.instance, instance
        start = time.time()
        answer = self._ask(action, 'PATCH', _ARQS, dict.fromkeys(arqs, patch))
        self._record(Kind.BIND, arqs, start, answer, instance=instance)
        if answer is not None and 400 <= answer.status < 500:
            slot.instance = previous
            self._deallocate(instance)
        elif action.waits:
            self._wait_for_event(arqs[-1], instance)

    def _wait_for_event(self, arq: str, instance: str) -> None:
        deadline = time.monotonic() + _WAIT
        while time.monotonic() < deadline:
            receipts = self._cluster.nova.receipts
            if any((r.arq, r.instance) == (arq, instance) for r in receipts):
                return
            time.sleep(_POLL)

    def _unbind(self, action: Action, slot: Slot) -> None:
        arqs, instance = slot.arqs, slot.instance
        if not arqs:  # the second worker has deleted them
            return
        patch = [{'path': path, 'op': 'remove'} for path in _FIELDS]
        start = time.time()
        answer = self._ask(action, 'PATCH', _ARQS, dict.fromkeys(arqs, patch))
        self._record(Kind.UNBIND, arqs, start, answer)
        if instance:
            self._deallocate(instance)

    def _rebind(self, action: Action, slot: Slot) -> None:
        self._unbind(action, slot)
        self._bind(action, slot)

    def _ignore(self, action: Action, slot: Slot) -> None:
        """Do nothing; the ARQs are read after each action."""

    def _delete(self, action: Action, slot: Slot) -> None:
        arqs, instance = slot.arqs, slot.instance
        if not arqs:
            return
        start = time.time()
        answer = self._ask(action, 'DELETE', f'{_ARQS}?arqs={",".join(arqs)}')
        self._record(Kind.DELETE, arqs, start, answer)
        if answer is not None and answer.status in (204, 404):
            self._clear(slot, arqs)
        self._read(action, arqs)
        if instance:
            self._deallocate(instance)

    def _delete_instance(self, action: Action, slot: Slot) -> None:
        arqs, instance = slot.arqs, slot.instance
        if not (arqs and instance):
            return
        start = time.time()
        answer = self._ask(action, 'DELETE', f'{_ARQS}?instance={instance}')
        self._record(Kind.DELETE_INSTANCE, arqs, start, answer, instance=instance)
        self._read(action, arqs)
        self._deallocate(instance)
        # The bind of the instance may have been refused; then its ARQs remain.
        self._delete(action, slot)

    @staticmethod
    def _clear(slot: Slot, arqs: tuple[str, ...]) -> None:
        if slot.arqs == arqs:
            slot.arqs, slot.instance = (), ''

    def _read(self, action: Action, arqs: Sequence[str]) -> None:
        for arq in arqs:
            start = time.time()
            answer = self._ask(action, 'GET', f'{_ARQS}/{arq}')
            self._record(Kind.READ, [arq], start, answer)

    def _record(
        self,
        kind: Kind,
        arqs: Sequence[str],
        start: float,
        answer: Answer | None,
        *,
        instance: str = '',
    ) -> None:
        """Record an operation on each of its ARQs."""
        end = None if answer is None else time.time()
        status = None if answer is None else answer.status
        body = {}
        if kind is Kind.READ and status == 200 and answer is not None:
            body = answer.body
            instance = body['instance_uuid'] or ''
        self._recorder.operations += [
            Operation(
                kind,
                arq,
                start,
                end,
                status,
                instance,
                state=body.get('state', ''),
                has_handle=bool(body.get('attach_handle_uuid')),
            )
            for arq in arqs
        ]

    # --- other operations ---

    def _edit_profile(self, action: Action, slot: Slot) -> None:
        name = self._cluster.profiles[slot.count]
        value = f'Edited in slot {action.slot}.'
        patch = [{'op': 'replace', 'path': '/description', 'value': value}]
        self._ask(action, 'PATCH', f'/v2/device_profiles/{name}', patch)

    def _switch_device(self, action: Action, slot: Slot) -> None:
        """Disable a device and enable it again."""
        path = f'/v2/devices/{self._cluster.devices[action.host]}'
        for status in ('maintaining', 'enabled'):
            patch = [{'op': 'replace', 'path': '/status', 'value': status}]
            self._ask(action, 'PATCH', path, patch)

    def _change_report(self, action: Action, slot: Slot) -> None:
        self._cluster.resize(action.host, 12 + 4 * (action.slot % 2))

    def _allocate(self, host: int, instance: str, count: int) -> bool:
        """Allocate units in Placement; return False if it has too few."""
        _, provider = self._cluster.hosts[host]
        body = {
            'allocations': {provider: {'resources': {'VGPU': count}}},
            'project_id': PROJECT,
            'user_id': 'b' * 32,
            'consumer_generation': None,
            'consumer_type': 'INSTANCE',
        }
        path = f'/allocations/{instance}'
        return self._cluster.placement.ask('PUT', path, body).status == 204

    def _deallocate(self, instance: str) -> None:
        with suppress(OSError):
            self._cluster.placement.ask('DELETE', f'/allocations/{instance}')

    # Any: JSON.
    def _ask(
        self, action: Action, method: str, path: str, body: Any = None
    ) -> Answer | None:
        """Send a request; None: there was no complete answer."""
        try:
            return self._cluster.service(action.api).ask(method, path, body)
        except (OSError, http.client.HTTPException):
            return None
