# SPDX-License-Identifier: Apache-2.0
"""Users of the simulated cloud: Nova builds and deletes servers with accelerators."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from tests.chaos.history.records import Kind, Operation
from tests.simulation import scheduler
from tests.simulation.cloud import BIND_DEADLINE, Cloud
from tests.simulation.hosts import CLASS, happens
from tests.simulation.peers import Placed, Server

PROFILES: Final = {'one': (1,), 'two': (2,), 'pair': (1, 1)}
"""Number of accelerators of each group."""
_ARQS: Final = '/v2/accelerator_requests'
_FIELDS: Final = ('/hostname', '/device_rp_uuid', '/instance_uuid')
_EVENT_TIMEOUT: Final = 120.0  # seconds
_POLL: Final = 1.0  # seconds
_SERVING_LIMIT: Final = 300.0  # seconds
_SHELVED: Final = 0.5  # part of the servers
_EDITED: Final = 0.15  # likewise
_ATTEMPTS: Final = 8  # of a request that was answered with 5xx


@dataclass
class Users:
    """The users, and what they have seen."""

    cloud: Cloud
    operations: list[Operation] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    is_over: bool = False
    """True: no further server is built."""
    running: int = 0

    def create_profiles(self) -> None:
        """Create the profiles."""
        for name, sizes in PROFILES.items():
            groups = [{f'resources:{CLASS}': str(size)} for size in sizes]
            body = [{'name': name, 'groups': groups}]
            while True:
                answer = self.cloud.ask('POST', '/v2/device_profiles', body)
                if answer.status_int in (201, 409):
                    break
                assert answer.status_int >= 500, answer.body
                time.sleep(_POLL)

    def start(self, number: int) -> None:
        """Start users, each of which builds one server after the other."""
        for index in range(number):
            self.running += 1
            scheduler.find_scheduler().start(f'user{index}', self._build_servers)

    def list_waiting(self) -> Sequence[str]:
        """Return a line if a user still waits for an answer."""
        return [f'{self.running} users wait for an answer.'] if self.running else []

    def _build_servers(self) -> None:
        chance = scheduler.find_scheduler().current.random
        while not self.is_over:
            self._build_server(chance.choice(sorted(PROFILES)))
            time.sleep(chance.random() * 5)
        self.running -= 1

    def check_hosts_serve(self) -> None:
        """Check that each host gets a server, also if one of its cards hangs."""
        for host in self.cloud.cards:
            deadline = time.monotonic() + _SERVING_LIMIT
            while not self._spawn('one', str(uuid4()), host):
                if time.monotonic() > deadline:
                    self._complain(f'{host} serves no instance')
                    break
                time.sleep(5 * _POLL)

    def _build_server(self, profile: str) -> None:
        """Build a server; half of the servers are shelved and unshelved."""
        instance, chance = str(uuid4()), scheduler.find_scheduler().current.random
        self._spawn(profile, instance)
        while chance.random() < _SHELVED:
            self._count('shelved')
            self._spawn(profile, instance)

    def _spawn(self, profile: str, instance: str, host: str = '') -> bool:
        """Spawn a server as Nova does, use it for a while and delete its ARQs.

        :param host: empty: the scheduler chooses one
        :returns: True if the server was active
        """
        cloud = self.cloud
        edited = profile
        if not host and happens(_EDITED):
            # The profile is edited between the scheduling and the ARQs.
            edited = scheduler.find_scheduler().current.random.choice(sorted(PROFILES))
        placed = cloud.placement.schedule(PROFILES[profile], instance, host)
        if placed is None:
            self._count('no host')
            return False
        arqs = self._create(edited)
        is_active = False
        if arqs:
            cloud.nova.servers[instance] = Server(placed.host)
            providers = [
                placed.providers[min(group, len(placed.providers) - 1)]
                for group, size in enumerate(PROFILES[edited])
                for _ in range(size)
            ]
            status = self._bind(arqs, providers, placed)
            if status == 202:
                is_active = self._use(instance, arqs, placed.host)
            else:
                self._count(f'bind {status}')
        self._delete(instance, arqs)
        cloud.nova.servers.pop(instance, None)
        cloud.placement.consumers.pop(instance, None)
        return is_active

    def _create(self, profile: str) -> Sequence[str]:
        start = time.time()
        answer = self.cloud.ask('POST', _ARQS, {'device_profile_name': profile})
        if answer.status_int != 201:
            self._count(f'create {answer.status_int}')
            return ()
        arqs = [arq['uuid'] for arq in answer.json['arqs']]
        self._record(Kind.CREATE, arqs, start, 201)
        return arqs

    def _bind(
        self, arqs: Sequence[str], providers: Sequence[str], placed: Placed
    ) -> int:
        body = {}
        for arq, provider in zip(arqs, providers, strict=True):
            values = (placed.host, provider, placed.instance)
            body[arq] = [
                {'path': path, 'op': 'add', 'value': value}
                for path, value in zip(_FIELDS, values, strict=True)
            ]
        start = time.time()
        answer = self.cloud.ask('PATCH', _ARQS, body)
        status: int = answer.status_int
        self._record(Kind.BIND, arqs, start, status, instance=placed.instance)
        return status

    def _use(self, instance: str, arqs: Sequence[str], host: str) -> bool:
        """Wait for the event, read the ARQs and use the devices.

        :returns: True if the server was active
        """
        start, took = time.monotonic(), 0.0
        while not self.cloud.nova.has_received(arqs[0]) and took < _EVENT_TIMEOUT:
            time.sleep(_POLL)
            # The deadline of a bind begins again if the clock of the database steps.
            took = time.monotonic() - max(start, self.cloud.stepped_at)
        states = self._read(instance)
        if states is not None and 'BindStarted' in states and took > 2 * BIND_DEADLINE:
            self._complain(f'the bind of {instance} has not ended after {took:.0f} s')
        if states is None or set(states) != {'Bound'}:
            self._count(f'server failed: {states}')
            return False
        self._count('server built')
        self.cloud.nova.servers[instance].is_active = True
        self._check_devices(instance, arqs, host)
        time.sleep(scheduler.find_scheduler().current.random.random() * 60)
        self._check_devices(instance, arqs, host)
        return True

    def _check_devices(self, instance: str, arqs: Sequence[str], host: str) -> None:
        """Check that the host has prepared a device for each ARQ."""
        if not self.cloud.nova.servers[instance].is_active:
            return  # its host was booted
        missing = set(arqs) - set(self.cloud.cards[host].prepared.values())
        if missing:
            self._complain(
                f'the server {instance} runs on {host} without the devices of '
                f'{", ".join(sorted(missing))}'
            )

    def _read(self, instance: str) -> Sequence[str] | None:
        """Return the states of the ARQs of an instance; None: no answer."""
        for _ in range(_ATTEMPTS):
            answer = self.cloud.ask('GET', f'{_ARQS}?instance={instance}')
            if answer.status_int == 200:
                return [arq['state'] for arq in answer.json['arqs']]
            if answer.status_int < 500:
                return [str(answer.status_int)]
            time.sleep(_POLL)
        return None

    def _delete(self, instance: str, arqs: Sequence[str]) -> None:
        for path in (f'instance={instance}', f'arqs={",".join(arqs)}'):
            if not arqs:
                return
            kind = Kind.DELETE_INSTANCE if 'instance' in path else Kind.DELETE
            for _ in range(_ATTEMPTS):
                start = time.time()
                answer = self.cloud.ask('DELETE', f'{_ARQS}?{path}')
                status = answer.status_int
                self._record(kind, arqs, start, status, instance=instance)
                if status < 500:
                    break
                time.sleep(_POLL)

    def _record(
        self,
        kind: Kind,
        arqs: Sequence[str],
        start: float,
        status: int,
        instance: str = '',
    ) -> None:
        now = time.time()
        self.operations += [
            Operation(kind, arq, start, now, status, instance) for arq in arqs
        ]
        if status == 500:
            self._complain(f'{kind} is answered with 500')

    def _count(self, outcome: str) -> None:
        self.counts[outcome] = self.counts.get(outcome, 0) + 1

    def _complain(self, text: str) -> None:
        self.violations.append(f'{time.time() - scheduler.START:.3f} {text}')
