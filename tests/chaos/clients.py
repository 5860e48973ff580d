# SPDX-License-Identifier: Apache-2.0
"""Nova as a patient client: it repeats unanswered requests and records all answers."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import uuid4

from devstack.launcher.rest import Answer
from tests.chaos.faulty_cloud import FaultyCloud
from tests.servers.stack import NOVA, Instance

T = TypeVar('T')

PATIENCE: Final = 150.0  # seconds of repetition

_ARQS: Final = '/v2/accelerator_requests'


class OperationTimeout(Exception):
    """Timeout of an operation that the service must complete."""


@dataclass
class Ledger:
    """Counters of the answers to all clients."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        with self.lock:
            self.answers[text] += 1

    def fault(self, text: str) -> None:
        with self.lock:
            self.faults.append(text)


@dataclass
class Offer:
    """Resource class and size of the requests."""

    resource_class: str
    profile: str
    provider: str


class Client:
    """Client with its own random source."""

    def __init__(self, cloud: FaultyCloud, ledger: Ledger, seed: int) -> None:
        self._cloud = cloud
        self._ledger = ledger
        self._random = random.Random(seed)

    def serve(self, offer: Offer) -> None:
        """Boot and delete one instance."""
        instance = Instance(self._cloud, offer.provider, {offer.resource_class: 1})
        try:
            self._create(instance, offer.profile)
            if self._allocate(instance):
                self._bind(instance)
            self._delete(instance)
            self._ask_until('DELETE', f'/allocations/{instance.uuid}', {204, 404})
        except OperationTimeout as error:
            self._ledger.fault(f'{instance.uuid} {instance.arqs}: {error}')

    def _create(self, instance: Instance, profile: str) -> None:
        body = {'device_profile_name': profile}
        answer = self._ask_until('POST', _ARQS, {201}, body)
        instance.arqs += [arq['uuid'] for arq in answer.body['arqs']]

    def _allocate(self, instance: Instance) -> bool:
        """Allocate resources; return False if Placement has no room."""
        try:
            instance.allocate()
        except AssertionError:
            self._ledger.note('no valid host')
            return False
        return True

    def _bind(self, instance: Instance) -> None:
        """Send a bind; repeat it if there was no answer, which Nova does not do."""
        answer = self._try(instance.bind)
        while answer is None or answer.status == 503:
            # The bind may have been accepted although the answer was lost.
            if self._states(instance) != {'Initial'}:
                break
            answer = self._try(instance.bind)
        statuses = self._until(
            lambda: {event['status'] for event in instance.events()}, 'an event'
        )
        states = self._states(instance)
        states_by_status = {'completed': {'Bound'}, 'failed': {'BindFailed'}}
        if len(statuses) != 1 or states != states_by_status[next(iter(statuses))]:
            self._ledger.fault(f'{instance.uuid}: heard {statuses}, sees {states}')
        self._ledger.note(next(iter(statuses)))

    def _states(self, instance: Instance) -> set[str]:
        path = f'{_ARQS}?arqs={",".join(instance.arqs)}'
        answer = self._ask_until('GET', path, {200})
        return {arq['state'] for arq in answer.body['arqs']}

    def _delete(self, instance: Instance) -> None:
        """Delete by instance and then by uuid, as Nova does."""
        self._ask_until('DELETE', instance.path, {204})
        path = f'{_ARQS}?arqs={",".join(instance.arqs)}'
        self._ask_until('DELETE', path, {204, 404})

    # --- repetition ---

    def _ask_until(
        self, method: str, path: str, statuses: set[int], body: Any = None
    ) -> Answer:
        """Repeat a request until the answer has an expected status. Any: JSON."""
        is_accelerator_path = path.startswith('/v2')
        service = (
            self._cloud.api(NOVA) if is_accelerator_path else self._cloud.placement
        )

        def send_once() -> Answer | None:
            answer = self._try(lambda: service.ask(method, path, body))
            if answer is not None and answer.status in statuses:
                return answer
            if answer is not None and answer.status not in (409, 500, 503):
                raise OperationTimeout(
                    f'{method} {path}: {answer.status} {answer.body}'
                )
            if answer is not None and is_accelerator_path:
                self._ledger.note(f'{method} {answer.status}')
            return None

        return self._until(send_once, f'{method} {path} ends with {statuses}')

    def _try(self, act: Callable[[], Answer]) -> Answer | None:
        try:
            return act()
        except OSError:
            self._ledger.note('no answer')
            return None

    def _until(self, happened: Callable[[], T | None], text: str) -> T:
        deadline = time.monotonic() + PATIENCE
        while not (answer := happened()):
            if time.monotonic() > deadline:
                raise OperationTimeout(f'waited {PATIENCE:.0f} s until {text}')
            time.sleep(self._random.uniform(0.05, 0.2))
        return answer


def offers(cloud: FaultyCloud, *resource_classes: str) -> list[Offer]:
    return [
        Offer(name, cloud.create_profile(name), cloud.provider_of(name))
        for name in resource_classes
    ]


def new_seed() -> int:
    return uuid4().int % 1_000_000
