# SPDX-License-Identifier: Apache-2.0
"""A real OpenStack on one machine: Keystone, Placement, Glance, Nova, cyborg_lite.

Each service is a process of its own from its published package. MariaDB and RabbitMQ
are those of the machine. Neutron is replaced by a stand-in without ports, because the
servers of these tests have no network. Nova runs with its fake virt driver.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import requests

from devstack.launcher import placement_server
from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child
from tests.builders import driver_packages
from tests.doubles.cards_driver import CardsDriver
from tests.doubles.neutron import NetworkHandler
from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.glance import RealGlance
from tests.servers.keystone import PASSWORD, Person, RealKeystone

ROOT: Final = Path(__file__).parents[2]
HOSTS: Final = ('cmp1', 'cmp2')
LOST_HOST: Final = 'cmp3'
"""A host to be lost: Nova's fake virt driver cannot be started again."""

SPARE_CARD: Final = 'fa4f:0a:00.0'
"""Card of class VGPU in the second host and in the host to be lost."""

_LIMIT: Final = 120.0  # seconds after which a wait fails
_PAUSE: Final = 0.2
# From 2.95 on an evacuated server stays stopped.
_COMPUTE: Final = 'compute 2.90'
_ACCELERATOR: Final = 'accelerator 2.4'

_AUTH: Final = """
auth_type = password
auth_url = {url}
username = {user}
password = {password}
user_domain_id = default
project_id = {project}
"""

_PLACEMENT: Final = """
[api]
auth_strategy = keystone
[placement_database]
connection = {connection}
[keystone_authtoken]
www_authenticate_uri = {url}
{auth}
"""

_NOVA: Final = """
[DEFAULT]
host = {host}
my_ip = 127.0.0.1
transport_url = {transport_url}
state_path = {directory}/{name}-state
log_file = {directory}/{name}.log
compute_driver = fake.FakeDriver
arq_binding_timeout = 60
periodic_fuzzy_delay = 0
report_interval = 2
service_down_time = 20
shelved_offload_time = 0
[api]
auth_strategy = keystone
[api_database]
connection = {api_database}
[database]
connection = {database}
[conductor]
workers = 1
[quota]
instances = -1
cores = -1
ram = -1
[scheduler]
workers = 1
discover_hosts_in_cells_interval = 2
[cache]
enabled = false
[vnc]
enabled = false
[spice]
enabled = false
[oslo_concurrency]
lock_path = {directory}/locks
[oslo_messaging_rabbit]
rabbit_quorum_queue = false
[keystone_authtoken]
www_authenticate_uri = {url}
{auth}
[service_user]
send_service_user_token = true
{auth}
[placement]
{auth}
[cyborg]
{auth}
[glance]
{auth}
[neutron]
{auth}
[cinder]
{auth}
"""

_NOVA_API: Final = """
import sys
sys.argv = ['nova-api']
from nova.wsgi.osapi_compute import application
from cheroot import wsgi
wsgi.Server(('127.0.0.1', {port}), application, numthreads=8).safe_start()
"""

_CYBORG: Final = """
[DEFAULT]
host = {host}
transport_url = {transport_url}
[api]
host = 127.0.0.1
port = {port}
[database]
connection = {connection}
[conductor]
job_lease = 3
agent_timeout = 5
bind_deadline = 40
[agent]
enabled_drivers = {drivers}
discovery_interval = 1
fingerprint_interval = 1
removal_scans = 1
heartbeat_interval = 1
state_path = {directory}/agent-{host}
image_directory = {directory}/agent-{host}/images
nova_config_files = {directory}/absent
[cards_driver]
folder = {directory}/cards-{host}
[keystone_authtoken]
www_authenticate_uri = {url}
service_token_roles_required = true
{auth}
[placement]
{auth}
[nova]
{auth}
[oslo_concurrency]
lock_path = {directory}/locks
"""


class OpenStack:
    """The running cloud, with three compute hosts."""

    def __init__(
        self, directory: Path, keystone: RealKeystone, glance: RealGlance
    ) -> None:
        self.directory = directory
        self.keystone = keystone
        self.glance = glance
        self._cleanup = ExitStack()
        self._tokens: dict[Person, str] = {}
        self.children: dict[str, Child] = {}
        self._ports = {name: free_port() for name in ('placement', 'nova', 'cyborg')}
        self._urls = {
            'placement': f'http://127.0.0.1:{self._ports["placement"]}',
            'compute': f'http://127.0.0.1:{self._ports["nova"]}/v2.1',
            'accelerator': f'http://127.0.0.1:{self._ports["cyborg"]}/v2',
        }

    def __enter__(self) -> Self:
        self._prepare_identity()
        self._prepare_servers()
        self._start_placement()
        self._start_nova()
        self._start_cyborg()
        self._wait_until_ready()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for child in reversed(self.children.values()):
            child.kill()
        self._cleanup.close()

    # --- start ---

    def _prepare_identity(self) -> None:
        service = self.keystone.project('service')
        self.admin = self.keystone.person('operator', service, 'admin')
        services = self.keystone.person('nova', service, 'service', 'admin')
        tenant, stranger = self.keystone.project('lab'), self.keystone.project('shop')
        self.owner = self.keystone.person('owner', tenant, 'member')
        self.stranger = self.keystone.person('stranger', stranger, 'member')
        self._auth = _AUTH.format(
            url=self.keystone.url,
            user=services.user,
            password=PASSWORD,
            project=service,
        )
        network = ThreadingHTTPServer(('127.0.0.1', 0), NetworkHandler)
        threading.Thread(target=network.serve_forever, daemon=True).start()
        self._cleanup.callback(network.shutdown)
        self._urls['network'] = f'http://127.0.0.1:{network.server_address[1]}'
        self._urls['image'] = self.glance.endpoint
        for service_type, url in self._urls.items():
            published = self.keystone.publish(service_type, url)
            self._cleanup.callback(self.keystone.withdraw, published)

    def _prepare_servers(self) -> None:
        self._transports = [
            self._cleanup.enter_context(rabbitmq.virtual_host()) for _ in range(2)
        ]
        self._databases: dict[str, str] = {}
        for name in ('nova_api', 'nova_cell0', 'nova_cell1', 'placement', 'cyborg'):
            database = fresh_database('mariadb')
            self._databases[name] = next(database)
            self._cleanup.callback(next, database, None)

    def _start_placement(self) -> None:
        path = self.directory / 'placement.conf'
        path.write_text(
            _PLACEMENT.format(
                connection=self._databases['placement'],
                url=self.keystone.url,
                auth=self._auth,
            )
        )
        command = [sys.executable, placement_server.__file__, str(path)]
        self._start('placement', [*command, str(self._ports['placement'])])

    def _start_nova(self) -> None:
        self._migrate_nova()
        folder = self.directory / 'nova-api'
        folder.mkdir()
        shutil.copy(Path(sys.prefix, 'etc/nova/api-paste.ini'), folder)
        self._nova_config('nova-api').rename(folder / 'nova.conf')
        program = _NOVA_API.format(port=self._ports['nova'])
        self._start('nova-api', [sys.executable, '-c', program])
        for binary in ('nova-conductor', 'nova-scheduler'):
            self._start(binary, self._nova_command(binary, binary))
        for host in (*HOSTS, LOST_HOST):
            name = f'nova-compute-{host}'
            self._start(name, self._nova_command('nova-compute', name, host))

    def _migrate_nova(self) -> None:
        for arguments in (
            ['api_db', 'sync'],
            ['cell_v2', 'map_cell0', '--database_connection', self._cell0],
            ['db', 'sync'],
            ['cell_v2', 'create_cell', '--name', 'cell1'],
        ):
            command = [*self._nova_command('nova-manage', 'nova-manage'), *arguments]
            subprocess.run(command, check=True, capture_output=True)

    @property
    def _cell0(self) -> str:
        return self._databases['nova_cell0']

    def _nova_command(self, binary: str, name: str, host: str = HOSTS[0]) -> list[str]:
        program = Path(sys.executable).with_name(binary)
        return [str(program), '--config-file', str(self._nova_config(name, host))]

    def _nova_config(self, name: str, host: str = HOSTS[0]) -> Path:
        path = self.directory / f'{name}.conf'
        path.write_text(
            _NOVA.format(
                host=host,
                name=name,
                directory=self.directory,
                transport_url=self._transports[0],
                api_database=self._databases['nova_api'],
                database=self._databases['nova_cell1'],
                url=self.keystone.url,
                auth=self._auth,
            )
        )
        return path

    def _start_cyborg(self) -> None:
        command = self._cyborg_command('dbsync', HOSTS[0])
        environment = {**os.environ, **self._environment()}
        subprocess.run([*command, 'upgrade'], check=True, env=environment)
        self.start_cyborg('conductor', 'conductor')
        self.start_cyborg('api', 'api')
        for number, host in enumerate((*HOSTS, LOST_HOST), 1):
            (self.directory / f'cards-{host}').mkdir()
            if host in HOSTS:
                self.add_card(host, f'fa4f:0{number}:00.0')
            if host != HOSTS[0]:
                self.add_card(host, SPARE_CARD, resource_class='VGPU')
            self.start_cyborg(f'agent-{host}', 'agent', host)

    def start_cyborg(self, name: str, binary: str, host: str = HOSTS[0]) -> None:
        """Start a daemon of ours."""
        self._start(name, self._cyborg_command(binary, host))

    def _cyborg_command(self, binary: str, host: str) -> list[str]:
        path = self.directory / f'cyborg-lite-{host}.conf'
        path.write_text(
            _CYBORG.format(
                host=host,
                drivers='fake_driver,cards_driver' if host in HOSTS else 'cards_driver',
                directory=self.directory,
                transport_url=self._transports[1],
                port=self._ports['cyborg'],
                connection=self._databases['cyborg'],
                url=self.keystone.url,
                auth=self._auth,
            )
        )
        module = f'cyborg_lite.cmd.{binary}'
        return [sys.executable, '-m', module, '--config-file', str(path)]

    def _environment(self) -> dict[str, str]:
        site = self.directory / 'site'
        if not site.exists():
            driver_packages.install(CardsDriver, site)
        return {
            'PYTHONPATH': os.pathsep.join([str(ROOT), str(site)]),
            'PYTHONUNBUFFERED': '1',
            'OS_NOVA_CONFIG_DIR': str(self.directory / 'nova-api'),
            'OS_NOVA_DISABLE_EVENTLET_PATCHING': 'true',
        }

    def _start(self, name: str, command: list[str]) -> None:
        child = Child(name, self.directory / f'{name}.out')
        child.start(command, self._environment())
        self.children[name] = child

    def _wait_until_ready(self) -> None:
        def has_providers() -> bool:
            names = {provider['name'] for provider in self.providers()}
            cards = {f'{host}_fa4f:0{n}:00.0' for n, host in enumerate(HOSTS, 1)}
            cards |= {f'{HOSTS[1]}_{SPARE_CARD}', f'{LOST_HOST}_{SPARE_CARD}'}
            return cards <= names and {f'{h}_FakeDevice' for h in HOSTS} <= names

        self.until(self._answers, 'the compute API answers')
        self.until(has_providers, 'Placement has the devices of both hosts')
        self.image = self.glance.upload(b'guest', (), {})

    def _answers(self) -> bool:
        try:
            services = self.compute('GET', '/os-services')['services']
        except (requests.RequestException, AssertionError):
            return False
        states = [(s['binary'], s['state']) for s in services]
        return states.count(('nova-compute', 'up')) == len(HOSTS) + 1

    # --- REST ---

    def compute(
        self, method: str, path: str, body: Any = None, user: Person | None = None
    ) -> Any:
        """Call Nova; return the JSON of the answer, of any shape."""
        return self._call('compute', method, path, body, user)

    def accelerator(
        self, method: str, path: str, body: Any = None, user: Person | None = None
    ) -> Any:
        """Call cyborg_lite; return the JSON of the answer, of any shape."""
        return self._call('accelerator', method, path, body, user)

    def placement(self, method: str, path: str, body: Any = None) -> Any:
        """Call Placement; return the JSON of the answer, of any shape."""
        return self._call('placement', method, path, body, None)

    def status(
        self, service: str, method: str, path: str, user: Person | None = None
    ) -> int:
        """Return the HTTP status of a call without a body."""
        return self._send(service, method, path, None, user).status_code

    def succeeds(self, method: str, path: str, body: Any) -> bool:
        """Check whether Nova accepts a call."""
        return self._send('compute', method, path, body, None).ok

    def _call(
        self, service: str, method: str, path: str, body: Any, user: Person | None
    ) -> Any:
        answer = self._send(service, method, path, body, user)
        assert answer.ok, f'{method} {path}: {answer.status_code} {answer.text}'
        return answer.json() if answer.content else None

    def _send(
        self, service: str, method: str, path: str, body: Any, user: Person | None
    ) -> requests.Response:
        versions = {
            'compute': _COMPUTE,
            'placement': 'placement 1.39',
            'accelerator': _ACCELERATOR,
        }
        headers = {
            'X-Auth-Token': self._token(user or self.admin),
            'OpenStack-API-Version': versions[service],
        }
        url = self._urls[service] + path
        return requests.request(method, url, json=body, headers=headers, timeout=60)

    def _token(self, user: Person) -> str:
        if user not in self._tokens:
            self._tokens[user] = self.keystone.token_of(user)
        return self._tokens[user]

    # --- what tests do ---

    def until(self, condition: Callable[[], Any], description: str) -> Any:
        """Return the first true value of the condition."""
        deadline = time.monotonic() + _LIMIT
        while not (value := condition()):
            for name, child in self.children.items():
                assert child.status is None, f'{name} ended: {child.tail()}'
            assert time.monotonic() < deadline, (
                f'waited {_LIMIT:.0f} s until {description}'
            )
            time.sleep(_PAUSE)
        return value

    def providers(self) -> list[dict[str, Any]]:
        """Return all resource providers."""
        listing: dict[str, Any] = self.placement('GET', '/resource_providers')
        return list(listing['resource_providers'])

    def provider(self, name: str) -> str:
        """Return the uuid of the provider with the name, once it exists."""

        def find() -> str | None:
            for provider in self.providers():
                if provider['name'] == name:
                    return str(provider['uuid'])
            return None

        return str(self.until(find, f'provider {name} exists'))

    def inventory(self, name: str) -> dict[str, Any]:
        """Return the inventories of a provider by resource class."""
        path = f'/resource_providers/{self.provider(name)}/inventories'
        return dict(self.placement('GET', path)['inventories'])

    def usages(self, name: str) -> dict[str, int]:
        """Return the used amounts of a provider by resource class."""
        path = f'/resource_providers/{self.provider(name)}/usages'
        return dict(self.placement('GET', path)['usages'])

    def add_card(
        self, host: str, address: str, units: int = 2, resource_class: str = 'PGPU'
    ) -> None:
        """Plug a card into a host."""
        path = self.directory / f'cards-{host}' / f'{address}.json'
        card = {'address': address, 'units': units, 'resource_class': resource_class}
        path.write_text(json.dumps(card))

    def remove_card(self, host: str, address: str) -> None:
        """Pull a card out of a host."""
        (self.directory / f'cards-{host}' / f'{address}.json').unlink()

    def refuse(self, host: str, refused: bool = True) -> None:
        """Let the driver of a host refuse to prepare its card, or stop to."""
        path = self.directory / f'cards-{host}' / 'refuse'
        if refused:
            path.touch()
        else:
            path.unlink(missing_ok=True)

    def create_profile(self, **resources: int) -> str:
        """Create a device profile of one group; return its name."""
        name = f'profile-{uuid.uuid4().hex[:8]}'
        group = {f'resources:{key}': str(value) for key, value in resources.items()}
        body = [{'name': name, 'groups': [group]}]
        self.accelerator('POST', '/device_profiles', body)
        return name

    def create_flavor(self, profile: str | None) -> str:
        """Create a flavor that names the profile; return its id."""
        flavor = {'name': uuid.uuid4().hex, 'ram': 16, 'vcpus': 1, 'disk': 1}
        created = self.compute('POST', '/flavors', {'flavor': flavor})['flavor']
        if profile is not None:
            specs = {'extra_specs': {'accel:device_profile': profile}}
            self.compute('POST', f'/flavors/{created["id"]}/os-extra_specs', specs)
        return str(created['id'])

    def create_server(
        self, flavor: str, host: str | None = None, user: Person | None = None
    ) -> 'Server':
        """Ask Nova for a server; return without waiting."""
        server = {
            'name': 'guest',
            'flavorRef': flavor,
            'imageRef': self.image,
            'networks': 'none',
        }
        if host is not None:
            server['host'] = host
        body = {'server': server}
        created = self.compute('POST', '/servers', body, user)['server']
        return Server(self, str(created['id']))

    def boot(
        self, profile: str | None, host: str | None = None, user: Person | None = None
    ) -> 'Server':
        """Boot a server that needs the profile; return it when it is ACTIVE."""
        server = self.create_server(self.create_flavor(profile), host, user)
        assert server.wait_built() == 'ACTIVE', server.fault()
        return server


class Server:
    """A server of Nova."""

    def __init__(self, cloud: OpenStack, server_uuid: str) -> None:
        self.cloud = cloud
        self.uuid = server_uuid

    def show(self) -> dict[str, Any]:
        """Return the server as Nova shows it."""
        return dict(self.cloud.compute('GET', f'/servers/{self.uuid}')['server'])

    def fault(self) -> str:
        """Return the fault message, or an empty text."""
        return str(self.show().get('fault', {}).get('message', ''))

    def host(self) -> str:
        """Return the compute host of the server."""
        return str(self.show()['OS-EXT-SRV-ATTR:host'])

    def wait_built(self) -> str:
        """Wait until the build ends; return ACTIVE or ERROR."""
        return self.wait_for('ACTIVE', 'ERROR')

    def wait_for(self, *statuses: str) -> str:
        """Wait for one of the statuses without a task; return it."""

        def read_status() -> str | None:
            server = self.show()
            idle = server['OS-EXT-STS:task_state'] is None
            final = server['status'] in statuses and idle
            return str(server['status']) if final else None

        return str(self.cloud.until(read_status, f'server is {" or ".join(statuses)}'))

    def act(self, action: str, body: Any = None, user: Person | None = None) -> None:
        """Post a server action."""
        path = f'/servers/{self.uuid}/action'
        self.cloud.compute('POST', path, {action: body}, user)

    def arqs(self) -> list[dict[str, Any]]:
        """Return the ARQs of the server as cyborg_lite shows them."""
        path = f'/accelerator_requests?instance={self.uuid}'
        return list(self.cloud.accelerator('GET', path)['arqs'])

    def allocations(self) -> dict[str, Any]:
        """Return the allocations of the server by provider."""
        path = f'/allocations/{self.uuid}'
        return dict(self.cloud.placement('GET', path)['allocations'])

    def delete(self) -> None:
        """Delete the server and wait until Nova has forgotten it."""
        self.cloud.compute('DELETE', f'/servers/{self.uuid}')
        self.wait_gone()

    def wait_gone(self) -> None:
        """Wait until Nova has deleted the server."""
        path = f'/servers/{self.uuid}'
        self.cloud.until(
            lambda: self.cloud.status('compute', 'GET', path) == 404,
            'the server is deleted',
        )
