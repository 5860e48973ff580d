# SPDX-License-Identifier: Apache-2.0
"""The life of an accelerator, played against the running service, with evidence.

We are the administrator, the scheduler and Nova in turn; the service does the rest.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from devstack.launcher import configuration, places, records
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.rest import Answer, Service
from devstack.launcher.stack import Stack

_LIMIT: Final = 60.0  # seconds that anything may take
_PAUSE: Final = 0.1
_PROJECT: Final = 'a' * 32
_ADMIN: Final = {
    'X-User-Id': 'b' * 32,
    'X-Project-Id': _PROJECT,
    'X-Roles': 'admin,member,reader',
}
_NOVA: Final = {**_ADMIN, 'X-Service-Roles': 'service'}


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider that the service made in Placement."""

    uuid: str
    name: str
    resource_class: str
    total: int
    traits: tuple[str, ...]

    @property
    def own_trait(self) -> str:
        """What tells this kind of device from others of its class."""
        return next(trait for trait in self.traits if trait.startswith('CUSTOM_'))


def play(stack: Stack, *, needs_gpu: bool) -> None:
    """:raises LaunchFailed: a step is not so"""
    try:
        offers = _play(stack, {'FPGA', 'PGPU'} if needs_gpu else {'FPGA'})
    except OSError as error:
        raise LaunchFailed(f'The demo failed, nobody answers: {error}') from error
    print(f'\nThe demo is complete: {len(offers)} devices, every step as it should be.')


def _play(stack: Stack, wanted: set[str]) -> list[Offer]:
    _headline('What the agent found, and what Placement was told')
    offers = _offers(stack, wanted)
    for offer in offers:
        _Story(stack, offer).play()
    return offers


def _offers(stack: Stack, wanted: set[str]) -> list[Offer]:
    """One provider for each kind of device, once all wanted classes are there."""
    found: dict[str, Offer] = {}

    def complete() -> bool:
        found.update({offer.own_trait: offer for offer in _providers(stack)})
        return wanted <= {offer.resource_class for offer in found.values()}

    _until(complete, f'Placement has providers of {", ".join(sorted(wanted))}')
    admin = Service(stack.accelerator.endpoint, _ADMIN)
    devices = _expect(admin.ask('GET', '/v2/devices'), 200)['devices']
    _expect_that(bool(devices), 'the service lists devices')
    for device in devices:
        what = f'{device["vendor"]} {device["model"]} ({device["type"]})'
        _evidence('device', f'{what} on {device["hostname"]}, uuid {device["uuid"]}')
    for offer in found.values():
        _evidence('provider', f'{offer.name}, uuid {offer.uuid}')
        _evidence('  inventory', f'{offer.resource_class} total {offer.total}')
        _evidence('  traits', ', '.join(offer.traits))
    return [found[name] for name in sorted(found) if found[name].total]


def _providers(stack: Stack) -> Iterator[Offer]:
    """Those below the compute node that have an inventory."""
    placement = stack.placement
    path = f'/resource_providers?name={configuration.HOST}'
    (node,) = _expect(placement.ask('GET', path), 200)['resource_providers']
    path = f'/resource_providers?in_tree={node["uuid"]}'
    for provider in _expect(placement.ask('GET', path), 200)['resource_providers']:
        base = f'/resource_providers/{provider["uuid"]}'
        stock = _expect(placement.ask('GET', f'{base}/inventories'), 200)
        traits = _expect(placement.ask('GET', f'{base}/traits'), 200)['traits']
        for resource_class, record in stock['inventories'].items():
            if any(trait.startswith('CUSTOM_') for trait in traits):
                yield Offer(
                    uuid=provider['uuid'],
                    name=provider['name'],
                    resource_class=resource_class,
                    total=record['total'] - record['reserved'],
                    traits=tuple(sorted(traits)),
                )


class _Story:
    """From a device profile to a device that is free again."""

    def __init__(self, stack: Stack, offer: Offer) -> None:
        self._offer = offer
        self._placement = stack.placement
        self._admin = Service(stack.accelerator.endpoint, _ADMIN)
        self._nova = Service(stack.accelerator.endpoint, _NOVA)
        self._instance = str(uuid.uuid4())
        self._profile = f'demo-{offer.resource_class.lower()}-{self._instance[:8]}'

    def play(self) -> None:
        _headline(f'The story of {self._offer.name}')
        self._create_profile()
        arq = self._create_arq()
        self._allocate()
        self._bind(arq)
        self._hear_event(arq)
        self._read_bound(arq)
        self._delete(arq)

    def _create_profile(self) -> None:
        group = {
            f'resources:{self._offer.resource_class}': '1',
            f'trait:{self._offer.own_trait}': 'required',
        }
        profile = [{'name': self._profile, 'groups': [group]}]
        made = _expect(self._admin.ask('POST', '/v2/device_profiles', profile), 201)
        _evidence('profile', f'{made["name"]} asks for {json.dumps(made["groups"])}')

    def _create_arq(self) -> str:
        body = {'device_profile_name': self._profile}
        answer = self._nova.ask('POST', '/v2/accelerator_requests', body)
        (arq,) = _expect(answer, 201)['arqs']
        _expect_that(arq['state'] == 'Initial', f'the request is Initial: {arq}')
        _evidence('request', f'{arq["uuid"]} is {arq["state"]}')
        return str(arq['uuid'])

    def _allocate(self) -> None:
        """As Nova's scheduler: take a candidate of Placement's, and allocate it."""
        path = (
            f'/allocation_candidates?resources={self._offer.resource_class}:1'
            f'&required={self._offer.own_trait}'
        )
        candidates = _expect(self._placement.ask('GET', path), 200)
        chosen = [
            request['allocations']
            for request in candidates['allocation_requests']
            if self._offer.uuid in request['allocations']
        ]
        _expect_that(
            bool(chosen), f'Placement offers {self._offer.name} as a candidate'
        )
        consumer = {
            'allocations': chosen[0],
            'project_id': _PROJECT,
            'user_id': _ADMIN['X-User-Id'],
            'consumer_generation': None,
            'consumer_type': 'INSTANCE',
        }
        path = f'/allocations/{self._instance}'
        _expect(self._placement.ask('PUT', path, consumer), 204)
        _evidence('allocation', f'Placement gave it to instance {self._instance}')

    def _bind(self, arq: str) -> None:
        values = {
            '/hostname': configuration.HOST,
            '/device_rp_uuid': self._offer.uuid,
            '/instance_uuid': self._instance,
        }
        patch = [
            {'path': path, 'op': 'add', 'value': value}
            for path, value in values.items()
        ]
        answer = self._nova.ask('PATCH', '/v2/accelerator_requests', {arq: patch})
        _expect(answer, 202)
        _evidence('bind', 'accepted with 202')

    def _hear_event(self, arq: str) -> None:
        heard: list[dict[str, Any]] = []

        def arrived() -> bool:
            lines = places.NOVA_EVENTS.read_text().splitlines()
            events = (json.loads(line) for line in lines)
            heard[:] = [event for event in events if event.get('tag') == arq]
            return bool(heard)

        _until(arrived, f'an event with the tag {arq} reaches Nova')
        (event,) = heard
        expected = (event['server_uuid'], event['status'])
        _expect_that(expected == (self._instance, 'completed'), f'the event: {event}')
        _evidence('event', json.dumps(event))

    def _read_bound(self, arq: str) -> None:
        path = f'/v2/accelerator_requests?instance={self._instance}'
        answer = self._nova.ask('GET', f'{path}&bind_state=resolved')
        (bound,) = _expect(answer, 200)['arqs']
        _expect_that((bound['uuid'], bound['state']) == (arq, 'Bound'), f'{bound}')
        what = (
            f'{bound["attach_handle_type"]} {json.dumps(bound["attach_handle_info"])}'
        )
        _evidence('bound', f'{what}, handle {bound["attach_handle_uuid"]}')
        held = _held(arq)
        _expect_that(held == [bound['attach_handle_uuid']], f'one handle held: {held}')

    def _delete(self, arq: str) -> None:
        path = f'/v2/accelerator_requests?instance={self._instance}'
        _expect(self._nova.ask('DELETE', path), 204)
        left: list[Any] = _expect(self._nova.ask('GET', path), 200)['arqs']
        _expect_that(not left, f'the instance has no requests: {left}')

        # It leaves its instance at once, and goes when its host has cleaned the device.
        def gone() -> bool:
            answer = self._admin.ask('GET', f'/v2/accelerator_requests/{arq}')
            return answer.status == 404

        _until(gone, f'the request {arq} is gone')
        path = f'/allocations/{self._instance}'
        _expect(self._placement.ask('DELETE', path), 204)
        _evidence('deleted', 'the request and the allocation are gone')
        free, total = _free_handles(self._offer.uuid)
        _expect_that(free == total == self._offer.total, f'{free} of {total} are free')
        _evidence('free again', f'{free} of {total} attach handles')
        path = f'/v2/device_profiles/{self._profile}'
        _expect(self._admin.ask('DELETE', path), 204)


def _held(arq: str) -> list[str]:
    """The handles of a request, from the database itself."""
    rows = records.rows('SELECT uuid FROM attach_handles WHERE arq_uuid = ?', arq)
    return [row[0] for row in rows]


def _free_handles(provider: str) -> tuple[int, int]:
    """Those without an owner, and all; also from the database."""
    query = (
        'SELECT count(*) - count(arq_uuid), count(*) FROM attach_handles JOIN '
        'deployables ON deployables.id = deployable_id WHERE rp_uuid = ?'
    )
    ((free, total),) = records.rows(query, provider)
    return free, total


def _expect(answer: Answer, status: int) -> Any:
    """The body of an answer that must have that status; JSON is of any shape."""
    _expect_that(answer.status == status, f'{status} expected: {answer}')
    return answer.body


def _expect_that(holds: bool, what: str) -> None:
    if not holds:
        raise LaunchFailed(f'The demo failed, this is not so: {what}')


def _until(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _LIMIT
    while not happened():
        _expect_that(time.monotonic() < deadline, f'{what} within {_LIMIT:.0f} s')
        time.sleep(_PAUSE)


def _headline(text: str) -> None:
    print(f'\n== {text}', flush=True)


def _evidence(what: str, text: str) -> None:
    print(f'   {what + ":":<13} {text}', flush=True)
