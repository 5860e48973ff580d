# SPDX-License-Identifier: Apache-2.0
"""The demo: the life cycle of an accelerator, with the result of each step.

The demo acts as administrator, as the scheduler and as Nova. It checks each answer.
"""

import json
import time
import uuid
from collections.abc import Callable
from typing import Any, Final

from cyborg_lite.drivers.pci.names import load_names
from cyborg_lite.model.text import format_count
from devstack.launcher import (
    configuration,
    host_files,
    paths,
    records,
    sample_bitstreams,
)
from devstack.launcher.accelerators import Accelerator, list_accelerators
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.rest import Answer, Service
from devstack.launcher.stack import Stack

_TIMEOUT: Final = 60.0  # seconds for each step
_POLL_INTERVAL: Final = 0.1  # seconds
_PROJECT: Final = 'a' * 32
_ADMIN: Final = {
    'X-User-Id': 'b' * 32,
    'X-Project-Id': _PROJECT,
    'X-Roles': 'admin,member,reader',
}
_NOVA: Final = {**_ADMIN, 'X-Service-Roles': 'service'}


def run(stack: Stack) -> None:
    """Run the demo for one device of each type.

    :raises LaunchFailed: if a step fails
    """
    try:
        count = _run(stack, stack.resource_classes)
    except OSError as error:
        raise LaunchFailed(f'The demo failed: no connection: {error}') from error
    types = format_count(count, 'type')
    print(f'\nThe demo is complete: devices of {types}, all steps succeeded.')


def _run(stack: Stack, resource_classes: set[str]) -> int:
    """Return the number of life cycles that were run."""
    _print_headline('Devices of the agent and providers in Placement')
    accelerators = _wait_for_accelerators(stack, resource_classes)
    for accelerator in accelerators:
        _LifeCycle(stack, accelerator).run()
    return len(accelerators)


def _wait_for_accelerators(
    stack: Stack, resource_classes: set[str]
) -> list[Accelerator]:
    """Return one provider for each type of device, when all classes are present."""
    by_trait: dict[str, Accelerator] = {}

    def is_complete() -> bool:
        by_trait.update(
            {item.own_trait: item for item in list_accelerators(stack.placement)}
        )
        return resource_classes <= {
            provider.resource_class for provider in by_trait.values()
        }

    text = f'Placement has providers of {", ".join(sorted(resource_classes))}'
    _wait_until(is_complete, text)
    admin = Service(stack.accelerator.endpoint, _ADMIN)
    devices = _expect(admin.ask('GET', '/v2/devices'), 200)['devices']
    _expect_that(bool(devices), 'the service lists devices')
    names = load_names()
    for device in devices:
        vendor = names.describe(device['vendor']) or device['vendor']
        model = f'{vendor} {device["model"]} ({device["type"]})'
        _print_result(
            'device', f'{model} on {device["hostname"]}, uuid {device["uuid"]}'
        )
    for provider in by_trait.values():
        _print_result('provider', f'{provider.name}, uuid {provider.uuid}')
        inventory = f'total {provider.total}, reserved {provider.reserved}'
        _print_result('  inventory', f'{provider.resource_class} {inventory}')
        _print_result('  traits', ', '.join(provider.traits))
    return [by_trait[trait] for trait in sorted(by_trait) if by_trait[trait].is_usable]


class _LifeCycle:
    """The life cycle of one ARQ, from the device profile to its deletion."""

    def __init__(self, stack: Stack, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self._placement = stack.placement
        self._admin = Service(stack.accelerator.endpoint, _ADMIN)
        self._nova = Service(stack.accelerator.endpoint, _NOVA)
        self._instance = str(uuid.uuid4())
        # Only an emulated kernel loads a bitstream.
        self._image = (
            sample_bitstreams.find_image(accelerator.traits)
            if stack.has_sample_host
            else None
        )
        self._free = 0  # handles before the bind
        self._amount = accelerator.smallest
        self._profile = (
            f'demo-{accelerator.resource_class.lower()}-{self._instance[:8]}'
        )

    def run(self) -> None:
        """Run all steps."""
        _print_headline(f'Accelerator {self._accelerator.name}')
        self._free, _ = _free_handles(self._accelerator.uuid)
        self._create_profile()
        arqs = self._create_arqs()
        self._allocate()
        self._bind(arqs)
        for arq in arqs:
            self._wait_for_event(arq)
        self._read_bound(arqs)
        self._delete(arqs)

    def _create_profile(self) -> None:
        group = {
            f'resources:{self._accelerator.resource_class}': f'{self._amount}',
            f'trait:{self._accelerator.own_trait}': 'required',
        }
        if self._image is not None:
            group['accel:bitstream_id'] = self._image
        profile = [{'name': self._profile, 'groups': [group]}]
        created = _expect(self._admin.ask('POST', '/v2/device_profiles', profile), 201)
        _print_result(
            'profile', f'{created["name"]} with {json.dumps(created["groups"])}'
        )

    def _create_arqs(self) -> list[str]:
        body = {'device_profile_name': self._profile}
        answer = self._nova.ask('POST', '/v2/accelerator_requests', body)
        arqs = _expect(answer, 201)['arqs']
        for arq in arqs:
            _expect_that(arq['state'] == 'Initial', f'the ARQ is Initial: {arq}')
            _print_result('arq', f'{arq["uuid"]} is {arq["state"]}')
        return [str(arq['uuid']) for arq in arqs]

    def _allocate(self) -> None:
        """Allocate a candidate of Placement, as the scheduler of Nova does."""
        path = (
            f'/allocation_candidates?resources={self._accelerator.resource_class}:'
            f'{self._amount}&required={self._accelerator.own_trait}'
        )
        candidates = _expect(self._placement.ask('GET', path), 200)
        chosen = [
            request['allocations']
            for request in candidates['allocation_requests']
            if self._accelerator.uuid in request['allocations']
        ]
        _expect_that(
            bool(chosen),
            f'Placement has a candidate for {self._accelerator.name}',
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
        _print_result('allocation', f'allocated to instance {self._instance}')

    def _bind(self, arqs: list[str]) -> None:
        values = {
            '/hostname': configuration.HOST,
            '/device_rp_uuid': self._accelerator.uuid,
            '/instance_uuid': self._instance,
        }
        patch = [
            {'path': path, 'op': 'add', 'value': value}
            for path, value in values.items()
        ]
        body = dict.fromkeys(arqs, patch)
        answer = self._nova.ask('PATCH', '/v2/accelerator_requests', body)
        _expect(answer, 202)
        _print_result('bind', 'accepted with 202')

    def _wait_for_event(self, arq: str) -> None:
        matches: list[dict[str, Any]] = []

        def has_arrived() -> bool:
            lines = paths.NOVA_EVENTS.read_text().splitlines()
            events = (json.loads(line) for line in lines)
            matches[:] = [event for event in events if event.get('tag') == arq]
            return bool(matches)

        _wait_until(has_arrived, f'an event with the tag {arq} reaches Nova')
        (event,) = matches
        expected = (event['server_uuid'], event['status'])
        _expect_that(expected == (self._instance, 'completed'), f'the event: {event}')
        _print_result('event', json.dumps(event))

    def _read_bound(self, arqs: list[str]) -> None:
        path = f'/v2/accelerator_requests?instance={self._instance}'
        answer = self._nova.ask('GET', f'{path}&bind_state=resolved')
        all_bound = _expect(answer, 200)['arqs']
        uuids = sorted(bound['uuid'] for bound in all_bound)
        _expect_that(uuids == sorted(arqs), f'all ARQs are bound: {all_bound}')
        for bound in all_bound:
            self._check_bound(bound)
        if self._image is not None:
            self._check_loaded()

    def _check_bound(self, bound: dict[str, Any]) -> None:
        _expect_that(bound['state'] == 'Bound', f'{bound}')
        info = json.dumps(bound['attach_handle_info'])
        handle = bound['attach_handle_uuid']
        _print_result('bound', f'{bound["attach_handle_type"]} {info}, handle {handle}')
        _print_result('on the host', host_files.describe(bound))
        handles = _list_handles(bound['uuid'])
        _expect_that(handles == [handle], f'the ARQ has one handle: {handles}')

    def _check_loaded(self) -> None:
        answer = self._admin.ask('GET', '/v2/deployables')
        loaded = [
            deployable['bitstream_id']
            for deployable in _expect(answer, 200)['deployables']
            if deployable['rp_uuid'] == self._accelerator.uuid
        ]
        _expect_that(loaded == [self._image], f'{self._image} is loaded: {loaded}')
        _print_result('loaded', f'image {self._image}')

    def _delete(self, arqs: list[str]) -> None:
        path = f'/v2/accelerator_requests?instance={self._instance}'
        _expect(self._nova.ask('DELETE', path), 204)
        listed = _expect(self._nova.ask('GET', path), 200)['arqs']
        _expect_that(not listed, f'the instance has no ARQs: {listed}')

        # The ARQ is deleted when the agent has released the device on the host.
        def is_deleted() -> bool:
            return all(
                self._admin.ask('GET', f'/v2/accelerator_requests/{arq}').status == 404
                for arq in arqs
            )

        _wait_until(is_deleted, f'the ARQs {", ".join(arqs)} are deleted')
        path = f'/allocations/{self._instance}'
        _expect(self._placement.ask('DELETE', path), 204)
        _print_result('deleted', 'the ARQ and the allocation')
        free, total = _free_handles(self._accelerator.uuid)
        _expect_that(free == self._free, f'{self._free} of {total} are free: {free}')
        _print_result('free again', f'{free} of {total} attach handles')
        path = f'/v2/device_profiles/{self._profile}'
        _expect(self._admin.ask('DELETE', path), 204)


def _list_handles(arq: str) -> list[str]:
    """Return the handles of an ARQ, from the database."""
    rows = records.rows('SELECT uuid FROM attach_handles WHERE arq_uuid = ?', arq)
    return [row[0] for row in rows]


def _free_handles(provider: str) -> tuple[int, int]:
    """Return the number of free handles and of all handles, from the database."""
    query = (
        'SELECT count(*) - count(arq_uuid), count(*) FROM attach_handles JOIN '
        'deployables ON deployables.id = deployable_id WHERE rp_uuid = ?'
    )
    ((free, total),) = records.rows(query, provider)
    return free, total


def _expect(answer: Answer, status: int) -> Any:
    """Return the body of a response with the expected status; Any: it is JSON."""
    _expect_that(answer.status == status, f'expected status {status}: {answer}')
    return answer.body


def _expect_that(condition: bool, text: str) -> None:
    if not condition:
        raise LaunchFailed(f'The demo failed. Expected: {text}')


def _wait_until(condition: Callable[[], bool], text: str) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while not condition():
        _expect_that(time.monotonic() < deadline, f'{text} within {_TIMEOUT:.0f} s')
        time.sleep(_POLL_INTERVAL)


def _print_headline(text: str) -> None:
    print(f'\n== {text}', flush=True)


def _print_result(name: str, text: str) -> None:
    print(f'   {name + ":":<13} {text}', flush=True)
