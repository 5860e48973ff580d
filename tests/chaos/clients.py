# SPDX-License-Identifier: Apache-2.0
"""Nova as a patient client: asks again when nobody answers, and notes what it heard."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import uuid4

from devstack.launcher.rest import Answer
from tests.chaos.kit import HurtCloud
from tests.fakes.stack import NOVA, Instance

T = TypeVar('T')

PATIENCE: Final = 150.0  # seconds for which it asks again

_ARQS: Final = '/v2/accelerator_requests'


class Impatient(Exception):
    """The service did not do in a long time what it must do."""


@dataclass
class Ledger:
    """What the clients were told."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    told: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def note(self, what: str) -> None:
        with self.lock:
            self.told[what] += 1

    def fault(self, what: str) -> None:
        with self.lock:
            self.faults.append(what)


@dataclass
class Offer:
    """What servers may ask for."""

    resource_class: str
    profile: str
    provider: str


class Client:
    """One of many; each has a random source of its own."""

    def __init__(self, cloud: HurtCloud, ledger: Ledger, seed: int) -> None:
        self._cloud = cloud
        self._ledger = ledger
        self._random = random.Random(seed)

    def serve(self, offer: Offer) -> None:
        """The life of one server."""
        instance = Instance(self._cloud, offer.provider, {offer.resource_class: 1})
        try:
            self._create(instance, offer.profile)
            if self._allocate(instance):
                self._bind(instance)
            self._delete(instance)
            self._ask_until('DELETE', f'/allocations/{instance.uuid}', {204, 404})
        except Impatient as error:
            self._ledger.fault(f'{instance.uuid} {instance.arqs}: {error}')

    def _create(self, instance: Instance, profile: str) -> None:
        body = {'device_profile_name': profile}
        answer = self._ask_until('POST', _ARQS, {201}, body)
        instance.arqs += [arq['uuid'] for arq in answer.body['arqs']]

    def _allocate(self, instance: Instance) -> bool:
        """False: Placement has no room, and a scheduler would say so."""
        try:
            instance.allocate()
        except AssertionError:
            self._ledger.note('no valid host')
            return False
        return True

    def _bind(self, instance: Instance) -> None:
        """Nova does not repeat a bind; we do, where nobody answered at all."""
        answer = self._try(instance.bind)
        while answer is None or answer.status == 503:
            # The answer may be lost, and the bind accepted all the same.
            if self._states(instance) != {'Initial'}:
                break
            answer = self._try(instance.bind)
        heard = self._until(
            lambda: {event['status'] for event in instance.events()}, 'an event'
        )
        states = self._states(instance)
        right = {'completed': {'Bound'}, 'failed': {'BindFailed'}}
        if len(heard) != 1 or states != right[next(iter(heard))]:
            self._ledger.fault(f'{instance.uuid}: heard {heard}, sees {states}')
        self._ledger.note(next(iter(heard)))

    def _states(self, instance: Instance) -> set[str]:
        path = f'{_ARQS}?arqs={",".join(instance.arqs)}'
        answer = self._ask_until('GET', path, {200})
        return {arq['state'] for arq in answer.body['arqs']}

    def _delete(self, instance: Instance) -> None:
        """By instance and then again by uuid, as Nova does."""
        self._ask_until('DELETE', instance.path, {204})
        path = f'{_ARQS}?arqs={",".join(instance.arqs)}'
        self._ask_until('DELETE', path, {204, 404})

    # --- patience ---

    def _ask_until(
        self, method: str, path: str, statuses: set[int], body: Any = None
    ) -> Answer:
        """The first answer with one of ``statuses``; a body is JSON of any shape."""
        ours = path.startswith('/v2')
        service = self._cloud.api(NOVA) if ours else self._cloud.placement

        def asked() -> Answer | None:
            answer = self._try(lambda: service.ask(method, path, body))
            if answer is not None and answer.status in statuses:
                return answer
            if answer is not None and answer.status not in (409, 500, 503):
                raise Impatient(f'{method} {path}: {answer.status} {answer.body}')
            if answer is not None and ours:
                self._ledger.note(f'{method} {answer.status}')
            return None

        return self._until(asked, f'{method} {path} ends with {statuses}')

    def _try(self, act: Callable[[], Answer]) -> Answer | None:
        try:
            return act()
        except OSError:
            self._ledger.note('no answer')
            return None

    def _until(self, happened: Callable[[], T | None], what: str) -> T:
        deadline = time.monotonic() + PATIENCE
        while not (found := happened()):
            if time.monotonic() > deadline:
                raise Impatient(f'waited {PATIENCE:.0f} s until {what}')
            time.sleep(self._random.uniform(0.05, 0.2))
        return found


def offers(cloud: HurtCloud, *resource_classes: str) -> list[Offer]:
    return [
        Offer(one, cloud.create_profile(one), cloud.provider_of(one))
        for one in resource_classes
    ]


def new_seed() -> int:
    return uuid4().int % 1_000_000
