# SPDX-License-Identifier: Apache-2.0
"""Cloud of real processes: the daemons, a Placement, a receiver of Nova's events.

::

    with Cloud(tmp_path, transport_url=..., connection=...) as cloud:
        cloud.migrate()
        cloud.start('conductor', name='c1')
        cloud.start('agent')
        cloud.start('api', workers=2)
        instance = cloud.boot_bound('FPGA')

Each daemon is a process with its own log; ``Child`` has ``end`` (SIGTERM and wait),
``kill`` (SIGKILL) and ``signal``.
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
from typing import Any, Final, Self

from devstack.launcher import placement_server
from devstack.launcher.configuration import PLACEMENT, free_port
from devstack.launcher.processes import Child
from devstack.launcher.rest import Answer, Service
from tests.doubles.nova import FakeNova
from tests.servers.forked_child import ForkedChild
from tests.servers.message_keys import write_keys
from tests.support.programs import find_module

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
_LIMIT: Final = 120.0  # seconds after which a wait fails
_PAUSE: Final = 0.02

Options = Mapping[str, Mapping[str, object]]  # section -> option -> value


class Cloud:
    """Deployment on one host with a unique name, so that its providers are unique."""

    forks = True
    """False: each daemon imports its modules itself, as a benchmark needs it."""

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
        self.python_path = [ROOT]  # Python path of the daemons, for out-of-tree drivers
        self._concurrency = concurrency
        self._cleanup = ExitStack()
        self._options: dict[str, dict[str, object]] = {
            'DEFAULT': {
                'host': self.host,
                'transport_url': transport_url,
                'graceful_shutdown_timeout': 30,
                'rpc_response_timeout': 20,
            },
            'api': {
                'auth_strategy': 'noauth',
                'host': '127.0.0.1',
                'port': self.port,
                # The tests observe binds that are running.
                'hold_bind': 0,
            },
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
            'nova': {
                'endpoint_override': self.nova.endpoint,
                # Some hosts of the tests have functions of vendor VFIO drivers.
                'attaches_unmanaged': True,
            },
            'oslo_concurrency': {'lock_path': directory / 'locks'},
        }
        self._add(options or {})

    def __enter__(self) -> Self:
        self._cleanup.enter_context(self.nova)
        self._start_placement()
        self._create_node()
        return self

    def __exit__(self, *trouble: object) -> None:
        for child in self.children:
            child.kill()
        self._cleanup.close()
        if trouble[1] is not None:
            for child in self.children:
                print(f'--- the end of {child.log}\n{child.tail(60)}', file=sys.stderr)

    def next_host(self) -> str:
        """Use another compute node for agents that start from now on."""
        self.host = f'host-{uuid.uuid4().hex[:8]}'
        self._add({'DEFAULT': {'host': self.host}})
        self._create_node()
        return self.host

    def _create_node(self) -> None:
        node = {'name': self.host, 'uuid': str(uuid.uuid4())}
        expect(self.placement.ask('POST', '/resource_providers', node), 200)
        # Nova attaches mdevs since 34.0.0, and sets this trait since then.
        traits = {'traits': ['OWNER_NOVA'], 'resource_provider_generation': 0}
        path = f'/resource_providers/{node["uuid"]}/traits'
        expect(self.placement.ask('PUT', path, traits), 200)

    # --- daemons ---

    def migrate(self) -> None:
        """Create the schema of the database as an operator does."""
        status, output = self.run('dbsync', 'upgrade')
        assert status == 0, output

    def _start_placement(self) -> None:
        config = self.directory / 'placement.conf'
        self._write_placement_config(config)
        child = ForkedChild('placement', self.directory / 'placement.log')
        port = self.placement.endpoint.rpartition(':')[2]
        command = [sys.executable, '-m', placement_server.__name__, str(config), port]
        child.start(command, {'PYTHONPATH': str(ROOT)})
        self._cleanup.callback(child.kill)
        child.until(self.placement.answers)

    def _write_placement_config(self, path: Path) -> None:
        database = self.directory / 'placement.sqlite'
        path.write_text(PLACEMENT.format(database=database))

    def start(
        self,
        binary: str,
        *,
        name: str | None = None,
        workers: int = 1,
        **default: object,
    ) -> Child:
        """Start a daemon with options of ``[DEFAULT]`` and wait until it is ready."""
        section = 'api' if binary == 'controller' else binary
        extra: Options = {section: {'workers': workers}, 'DEFAULT': default}
        word = 'Ready.'
        file = self.directory / f'{name or binary}.log'
        # An earlier daemon of the same name wrote into the same file.
        earlier = file.read_text(errors='replace').count(word) if file.exists() else 0
        child = self.begin(name or binary, binary, [], extra)
        child.until(lambda: self.log(child).count(word) >= earlier + workers)
        return child

    def restart(self, stopped: Child, binary: str, **options: Any) -> Child:
        """Start a daemon in place of a stopped one, with an empty log."""
        self.children.remove(stopped)
        stopped.log.unlink()
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
        """Start a daemon without waiting. A restart uses the name again.

        :param module: run in place of the module of the daemon
        """
        environment = environment or {}
        # The other backend patches modules when it is imported.
        can_fork = self._concurrency == 'threading' and 'PYTHONPATH' not in environment
        kind = ForkedChild if self.forks and can_fork else Child
        child = kind(f'cyborg-lite-{binary}', self.directory / f'{name}.log')
        config = self.write_config(name, options or {})
        command = [sys.executable, '-m', module or find_module(binary)]
        child.start(
            [*command, '--config-file', str(config), *arguments],
            {
                'CYBORG_LITE_CONCURRENCY': self._concurrency,
                'PYTHONPATH': os.pathsep.join(map(str, self.python_path)),
                'PYTHONUNBUFFERED': '1',
                **environment,
            },
        )
        self.children.append(child)
        return child

    def run(
        self,
        binary: str,
        *arguments: str,
        options: Options | None = None,
        module: str | None = None,
    ) -> tuple[int | None, str]:
        """Run a command until it ends; return its exit status and its output.

        :param module: run in place of the module of the command
        """
        name = f'{binary}-{uuid.uuid4().hex}'
        child = self.begin(name, binary, arguments, options, module=module)
        self.until(lambda: child.status is not None, f'{child.name} ends')
        self.children.remove(child)
        return child.status, self.log(child)

    def write_config(self, name: str, options: Options) -> Path:
        merged = {section: dict(values) for section, values in self._options.items()}
        host = str(options.get('DEFAULT', {}).get('host', self.host))
        for lines in (write_keys(self.directory, host), options):
            for section, values in lines.items():
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
        """Add options for daemons that start from now on."""
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

    # --- operations ---

    def until(
        self, happened: Callable[[], Any], description: str = 'the event is recorded'
    ) -> Any:
        """Wait until ``happened`` returns a true value and return it."""
        deadline = time.monotonic() + _LIMIT
        while not (result := happened()):
            assert time.monotonic() < deadline, (
                f'waited {_LIMIT:.0f} s until {description}'
            )
            time.sleep(_PAUSE)
        return result

    def providers(self) -> dict[str, dict[str, Any]]:
        """Return the providers below the compute node by name."""
        path = f'/resource_providers?name={self.host}'
        (node,) = expect(self.placement.ask('GET', path), 200)['resource_providers']
        path = f'/resource_providers?in_tree={node["uuid"]}'
        result = expect(self.placement.ask('GET', path), 200)['resource_providers']
        return {
            provider['name']: provider
            for provider in result
            if provider['uuid'] != node['uuid']
        }

    def inventory(self, provider: str) -> dict[str, dict[str, int]]:
        """Return the inventories of a provider by resource class."""
        path = f'/resource_providers/{provider}/inventories'
        result: dict[str, dict[str, int]] = expect(
            self.placement.ask('GET', path), 200
        )['inventories']
        return result

    def provider_of(self, resource_class: str) -> str:
        """Wait for a provider of a resource class and return its uuid."""

        def find_provider() -> str | None:
            for provider in self.providers().values():
                if resource_class in self.inventory(provider['uuid']):
                    return str(provider['uuid'])
            return None

        return str(
            self.until(find_provider, f'Placement has a provider of {resource_class}')
        )

    def create_profile(self, resource_class: str, count: int = 1, **keys: str) -> str:
        """Create a device profile and return its name; ``keys`` are ``accel:`` keys."""
        name = f'profile-{uuid.uuid4().hex[:8]}'
        group = {f'resources:{resource_class}': str(count)}
        group |= {f'accel:{key}': value for key, value in keys.items()}
        body = [{'name': name, 'groups': [group]}]
        expect(self.api().ask('POST', '/v2/device_profiles', body), 201)
        return name

    def request(
        self,
        resource_class: str,
        count: int = 1,
        *,
        provider: str = '',
        profile: str = '',
    ) -> 'Instance':
        """Create ARQs and an allocation, as Nova does before a bind.

        :param provider: empty: any provider of the resource class
        :param profile: empty: a new device profile
        """
        provider = provider or self.provider_of(resource_class)
        instance = Instance(self, provider, {resource_class: count})
        instance.create_arqs(profile or self.create_profile(resource_class, count))
        self.until(instance.has_candidate, f'Placement offers {provider}')
        instance.allocate()
        return instance

    def boot(self, resource_class: str, count: int = 1, **names: str) -> 'Instance':
        """Request an instance and send a bind, as Nova does."""
        instance = self.request(resource_class, count, **names)
        expect(instance.bind(), 202)
        return instance

    def boot_bound(
        self, resource_class: str, count: int = 1, **names: str
    ) -> 'Instance':
        """Boot an instance and wait until it is bound."""
        instance = self.boot(resource_class, count, **names)
        instance.wait_until_bound()
        return instance


@dataclass
class Instance:
    """Instance of Nova with ARQs."""

    cloud: Cloud
    provider: str
    resources: Mapping[str, int]
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    arqs: list[str] = field(default_factory=list)
    profile: str = ''  # empty: it has no ARQs yet

    @property
    def path(self) -> str:
        return f'/v2/accelerator_requests?instance={self.uuid}'

    def create_arqs(self, profile: str) -> None:
        self.profile = profile
        body = {'device_profile_name': profile}
        answer = self.cloud.api(NOVA).ask('POST', '/v2/accelerator_requests', body)
        self.arqs += [arq['uuid'] for arq in expect(answer, 201)['arqs']]

    def has_candidate(self) -> bool:
        """Check whether the scheduler of Nova would get the provider as a candidate.

        A device that was just cleaned is reserved until the next Placement sync."""
        amounts = ','.join(f'{name}:{count}' for name, count in self.resources.items())
        path = f'/allocation_candidates?resources={amounts}&in_tree={self.provider}'
        candidates = expect(self.cloud.placement.ask('GET', path), 200)
        requests = candidates['allocation_requests']
        return any(self.provider in request['allocations'] for request in requests)

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

    def bind(self, persona: Mapping[str, str] = NOVA) -> Answer:
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
        return self.cloud.api(persona).ask('PATCH', '/v2/accelerator_requests', body)

    def are_arqs_deleted(self) -> bool:
        """Check whether the ARQs are deleted.

        ARQs that a host must clean up leave their instance at once and are deleted
        after the cleanup."""
        admin, path = self.cloud.api(ADMIN), '/v2/accelerator_requests'
        answers = [admin.ask('GET', f'{path}/{uuid}') for uuid in self.arqs]
        return not self.list_arqs() and {answer.status for answer in answers} <= {404}

    def list_arqs(self) -> list[dict[str, Any]]:
        """Return the ARQs as the API shows them."""
        nova = self.cloud.api(NOVA)
        answer = nova.ask('GET', self.path)
        if answer.status == 409:  # Nova must not start it: an ARQ has failed
            path = f'/v2/accelerator_requests?arqs={",".join(self.arqs)}'
            answer = nova.ask('GET', path)
        result: list[dict[str, Any]] = expect(answer, 200)['arqs']
        return result

    def states(self) -> set[str]:
        return {arq['state'] for arq in self.list_arqs()}

    def events(self) -> list[dict[str, str]]:
        """Return the events that Nova received for the instance."""
        events = self.cloud.nova.events
        return [event for event in events if event['server_uuid'] == self.uuid]

    def is_resolved(self) -> bool:
        """Check whether Nova has received an event for each ARQ."""
        return {event['tag'] for event in self.events()} == set(self.arqs)

    def wait_until_bound(self) -> None:
        """Wait until Nova has received the events of a bind that succeeded."""
        self.cloud.until(self.is_resolved, 'Nova receives an event per ARQ')
        assert self.states() == {'Bound'}, self.list_arqs()

    def appear_in_nova(self) -> None:
        """Let Nova list the instance, on the current host of the cloud."""
        rules = self.cloud.nova.rules
        rules.servers[self.uuid] = self.cloud.host
        rules.profiles[self.uuid] = self.profile

    def disappear_from_nova(self) -> None:
        del self.cloud.nova.rules.servers[self.uuid]

    def delete(self) -> None:
        expect(self.give_back(), 204)
        self.deallocate()

    def end(self) -> None:
        """Delete the instance, and wait until its ARQs are deleted."""
        self.delete()
        self.cloud.until(self.are_arqs_deleted, 'the ARQs are deleted')

    def give_back(self) -> Answer:
        return self.cloud.api(NOVA).ask('DELETE', self.path)

    def deallocate(self) -> None:
        path = f'/allocations/{self.uuid}'
        expect(self.cloud.placement.ask('DELETE', path), 204)


def expect(answer: Answer, status: int) -> Any:
    """Return the body of an answer; check its status. Any: JSON."""
    assert answer.status == status, f'{status} expected: {json.dumps(answer.body)}'
    return answer.body


def find_json(output: str) -> Any:
    """Return the list in an output. Any: JSON."""
    _, bracket, text = f'\n{output}'.partition('\n[')
    return json.JSONDecoder().raw_decode(bracket.strip() + text)[0]


def lines_of(child: Child, word: str) -> list[str]:
    """Return the lines of the log that contain the word."""
    return [line for line in Cloud.log(child).splitlines() if word in line]
