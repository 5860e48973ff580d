# SPDX-License-Identifier: Apache-2.0
"""A cloud of real processes: our daemons, a Placement, a receiver of Nova's events.

::

    with Cloud(tmp_path, transport_url=..., connection=...) as cloud:
        cloud.migrate()
        cloud.start('conductor', name='c1')
        cloud.start('agent')
        cloud.start('api', workers=2)
        instance = cloud.boot('FPGA')
        cloud.until(instance.resolved)

Each daemon is a process of its own with a log of its own; ``Child`` has ``end``
(SIGTERM and wait), ``kill`` (SIGKILL) and ``signal``.
"""

import json
import os
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from devstack.launcher import placement_server
from devstack.launcher.configuration import PLACEMENT, free_port
from devstack.launcher.processes import Child
from devstack.launcher.rest import Answer, Service
from tests.fakes.nova import FakeNova

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = 'a' * 32

ADMIN: Final = {
    'X-User-Id': 'b' * 32,
    'X-Project-Id': PROJECT,
    'X-Roles': 'admin,member,reader',
}
NOVA: Final = {**ADMIN, 'X-Service-Roles': 'service'}
USER: Final = {
    'X-User-Id': 'c' * 32,
    'X-Project-Id': PROJECT,
    'X-Roles': 'member,reader',
}

_TO_PLACEMENT: Final = {
    'X-Auth-Token': 'admin',
    'OpenStack-API-Version': 'placement 1.39',
}
_LIMIT: Final = 60.0  # seconds after which a wait is a failure
_PAUSE: Final = 0.02

Options = Mapping[str, Mapping[str, object]]  # section -> option -> value


class Cloud:
    """One deployment on one host; the providers of its compute node are its own."""

    def __init__(
        self,
        directory: Path,
        *,
        transport_url: str,
        connection: str,
        options: Options | None = None,
        concurrency: str = 'threading',
    ) -> None:
        self.directory = directory
        self.host = f'host-{uuid.uuid4().hex[:8]}'
        self.nova = FakeNova()
        self.port = free_port()
        self.placement = Service(f'http://127.0.0.1:{free_port()}', _TO_PLACEMENT)
        self.children: list[Child] = []
        self.python_path = [ROOT]  # of the daemons; for drivers out of the tree
        self._concurrency = concurrency
        self._cleanup = ExitStack()
        self._options: dict[str, dict[str, object]] = {
            'DEFAULT': {
                'host': self.host,
                'transport_url': transport_url,
                'graceful_shutdown_timeout': 30,
                'rpc_response_timeout': 20,
            },
            'api': {'auth_strategy': 'noauth', 'host': '127.0.0.1', 'port': self.port},
            'database': {'connection': connection},
            'agent': {
                'enabled_drivers': 'fake_driver',
                'discovery_interval': 1,
                'fingerprint_interval': 1,
                'state_path': directory / 'agent',
                'image_directory': directory / 'agent' / 'images',
                'heartbeat_interval': 1,
            },
            'placement': {'endpoint_override': self.placement.endpoint},
            'nova': {'endpoint_override': self.nova.endpoint},
            'oslo_concurrency': {'lock_path': directory / 'locks'},
        }
        self._add(options or {})

    def __enter__(self) -> Self:
        self._cleanup.enter_context(self.nova)
        self._start_placement()
        self._create_node()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in reversed(self.children):
            child.end()
        self._cleanup.close()
        if error is not None:
            for child in self.children:
                print(f'--- the end of {child.log}\n{child.tail(60)}', file=sys.stderr)

    def next_host(self) -> str:
        """Go on with another compute node: agents started from now on are on it."""
        self.host = f'host-{uuid.uuid4().hex[:8]}'
        self._add({'DEFAULT': {'host': self.host}})
        self._create_node()
        return self.host

    def _create_node(self) -> None:
        node = {'name': self.host, 'uuid': str(uuid.uuid4())}
        expect(self.placement.ask('POST', '/resource_providers', node), 200)

    # --- daemons ---

    def migrate(self) -> None:
        """Bring the database up to date, as an operator does."""
        child = self.begin('dbsync', 'dbsync', ['upgrade'])
        child.until(lambda: child.status is not None)

    def _start_placement(self) -> None:
        config = self.directory / 'placement.conf'
        database = self.directory / 'placement.sqlite'
        config.write_text(PLACEMENT.format(database=database))
        child = Child('placement', self.directory / 'placement.log')
        port = self.placement.endpoint.rpartition(':')[2]
        child.start([sys.executable, placement_server.__file__, str(config), port])
        self._cleanup.callback(child.end)
        child.until(self.placement.answers)

    def start(
        self,
        binary: str,
        *,
        name: str | None = None,
        workers: int = 1,
        **default: object,
    ) -> Child:
        """A daemon that is ready; ``default`` are options of ``[DEFAULT]``."""
        extra: Options = {binary: {'workers': workers}, 'DEFAULT': default}
        child = self.begin(name or binary, binary, [], extra)
        word = 'Ready.' if workers == 1 else 'is ready.'
        child.until(lambda: self.log(child).count(word) >= workers)
        return child

    def restart(self, ended: Child, binary: str, **options: Any) -> Child:
        """As ``start``, in the place of one that has ended; its log begins anew."""
        self.children.remove(ended)
        ended.log.unlink()
        return self.start(binary, **options)

    def begin(  # noqa: PLR0913  # all but two are for special cases
        self,
        name: str,
        binary: str,
        arguments: Sequence[str] = (),
        options: Options | None = None,
        *,
        module: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """As ``start``, without waiting. A name is taken again by a restart.

        ``module`` is run in place of the daemon's own.
        """
        child = Child(f'cyborg-lite-{binary}', self.directory / f'{name}.log')
        config = self.write_config(name, options or {})
        command = [sys.executable, '-m', module or f'cyborg_lite.cmd.{binary}']
        child.start(
            [*command, '--config-file', str(config), *arguments],
            {
                'CYBORG_LITE_CONCURRENCY': self._concurrency,
                'PYTHONPATH': os.pathsep.join(map(str, self.python_path)),
                'PYTHONUNBUFFERED': '1',
                **(environment or {}),
            },
        )
        self.children.append(child)
        return child

    def write_config(self, name: str, options: Options) -> Path:
        merged = {section: dict(values) for section, values in self._options.items()}
        for section, values in options.items():
            merged.setdefault(section, {}).update(values)
        path = self.directory / f'{name}.conf'
        path.write_text(
            ''.join(
                f'[{section}]\n'
                + ''.join(f'{key} = {value}\n' for key, value in values.items())
                for section, values in merged.items()
            )
        )
        return path

    def configure(self, options: Options) -> None:
        """What daemons that start from now on are told besides."""
        self._add(options)

    def _add(self, options: Options) -> None:
        for section, values in options.items():
            self._options.setdefault(section, {}).update(values)

    @staticmethod
    def log(child: Child) -> str:
        return child.log.read_text(errors='replace')

    # --- personas ---

    def api(self, persona: Mapping[str, str] = ADMIN) -> Service:
        return Service(f'http://127.0.0.1:{self.port}', persona)

    # --- the story ---

    def until(self, happened: Callable[[], Any], what: str = 'it happens') -> Any:
        """The first true answer of ``happened``; any type, as it is the caller's."""
        deadline = time.monotonic() + _LIMIT
        while not (found := happened()):
            assert time.monotonic() < deadline, f'waited {_LIMIT:.0f} s until {what}'
            time.sleep(_PAUSE)
        return found

    def providers(self) -> dict[str, dict[str, Any]]:
        """Those below our compute node, by name; JSON as Placement has it."""
        path = f'/resource_providers?name={self.host}'
        (node,) = expect(self.placement.ask('GET', path), 200)['resource_providers']
        path = f'/resource_providers?in_tree={node["uuid"]}'
        found = expect(self.placement.ask('GET', path), 200)['resource_providers']
        return {one['name']: one for one in found if one['uuid'] != node['uuid']}

    def inventory(self, provider: str) -> dict[str, dict[str, int]]:
        """By resource class."""
        path = f'/resource_providers/{provider}/inventories'
        found: dict[str, dict[str, int]] = expect(self.placement.ask('GET', path), 200)[
            'inventories'
        ]
        return found

    def provider_of(self, resource_class: str) -> str:
        """The uuid of one that has it, once it is there."""

        def offered() -> str | None:
            for provider in self.providers().values():
                if resource_class in self.inventory(provider['uuid']):
                    return str(provider['uuid'])
            return None

        return str(self.until(offered, f'Placement has a provider of {resource_class}'))

    def create_profile(self, resource_class: str, count: int = 1, **more: str) -> str:
        """Its name. ``more`` are values of its group, by names of ``accel:`` keys."""
        name = f'profile-{uuid.uuid4().hex[:8]}'
        group = {f'resources:{resource_class}': str(count)}
        group |= {f'accel:{key}': value for key, value in more.items()}
        body = [{'name': name, 'groups': [group]}]
        expect(self.api().ask('POST', '/v2/device_profiles', body), 201)
        return name

    def boot(self, resource_class: str, count: int = 1) -> 'Instance':
        """As Nova does: requests, an allocation, and a bind that is accepted."""
        provider = self.provider_of(resource_class)
        profile = self.create_profile(resource_class, count)
        instance = Instance(self, provider, {resource_class: count})
        instance.create_arqs(profile)
        instance.allocate()
        expect(instance.bind(), 202)
        return instance


@dataclass
class Instance:
    """A server of Nova, as far as accelerators are concerned."""

    cloud: Cloud
    provider: str
    resources: Mapping[str, int]
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    arqs: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        return f'/v2/accelerator_requests?instance={self.uuid}'

    def create_arqs(self, profile: str) -> None:
        body = {'device_profile_name': profile}
        answer = self.cloud.api(NOVA).ask('POST', '/v2/accelerator_requests', body)
        self.arqs += [arq['uuid'] for arq in expect(answer, 201)['arqs']]

    def allocate(self) -> None:
        body = {
            'allocations': {self.provider: {'resources': dict(self.resources)}},
            'project_id': PROJECT,
            'user_id': ADMIN['X-User-Id'],
            'consumer_generation': None,
            'consumer_type': 'INSTANCE',
        }
        path = f'/allocations/{self.uuid}'
        expect(self.cloud.placement.ask('PUT', path, body), 204)

    def bind(self) -> Answer:
        values = {
            '/hostname': self.cloud.host,
            '/device_rp_uuid': self.provider,
            '/instance_uuid': self.uuid,
        }
        patch = [
            {'path': path, 'op': 'add', 'value': value}
            for path, value in values.items()
        ]
        body = dict.fromkeys(self.arqs, patch)
        return self.cloud.api(NOVA).ask('PATCH', '/v2/accelerator_requests', body)

    def gone(self) -> bool:
        """Whether the service has forgotten its requests: what their hosts must clean
        leaves its instance at once, and is there until that is done."""
        admin, path = self.cloud.api(ADMIN), '/v2/accelerator_requests'
        answers = [admin.ask('GET', f'{path}/{uuid}') for uuid in self.arqs]
        return not self.shown() and {answer.status for answer in answers} <= {404}

    def shown(self) -> list[dict[str, Any]]:
        """Its requests as the API shows them."""
        answer = self.cloud.api(NOVA).ask('GET', self.path)
        found: list[dict[str, Any]] = expect(answer, 200)['arqs']
        return found

    def states(self) -> set[str]:
        return {arq['state'] for arq in self.shown()}

    def events(self) -> list[dict[str, str]]:
        """What Nova heard of it."""
        events = self.cloud.nova.events
        return [event for event in events if event['server_uuid'] == self.uuid]

    def resolved(self) -> bool:
        """Whether Nova has heard of every request."""
        return {event['tag'] for event in self.events()} == set(self.arqs)

    def delete(self) -> None:
        expect(self.give_back(), 204)
        self.deallocate()

    def give_back(self) -> Answer:
        return self.cloud.api(NOVA).ask('DELETE', self.path)

    def deallocate(self) -> None:
        path = f'/allocations/{self.uuid}'
        expect(self.cloud.placement.ask('DELETE', path), 204)


def expect(answer: Answer, status: int) -> Any:
    """The body of an answer that must have that status; JSON is of any shape."""
    assert answer.status == status, f'{status} expected: {json.dumps(answer.body)}'
    return answer.body


def lines_of(child: Child, word: str) -> list[str]:
    """Those of its log that have the word."""
    return [line for line in Cloud.log(child).splitlines() if word in line]


__all__ = ['ADMIN', 'NOVA', 'USER', 'Cloud', 'Instance', 'expect', 'lines_of']
