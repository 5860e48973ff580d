# SPDX-License-Identifier: Apache-2.0
"""A real OpenStack on one machine: Keystone, Placement, Glance, Nova, cyborg_lite.

Each service is a process of its own from its published package. MariaDB and RabbitMQ
are those of the machine. Neutron is replaced by a stand-in without ports, because the
servers of these tests have no network. Nova runs with its fake virt driver, unless a
test adds a host with another one.
"""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

import requests

from devstack.launcher import placement_server
from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child
from tests.builders import driver_packages
from tests.doubles.cards_driver import CardsDriver
from tests.doubles.neutron import NetworkHandler
from tests.servers import openstack_config as config
from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.glance import RealGlance
from tests.servers.http_proxy import LossyProxy
from tests.servers.keystone import PASSWORD, RealKeystone
from tests.servers.message_keys import write_lines
from tests.servers.openstack_client import OpenStackClient, Server
from tests.support.programs import find_module

__all__ = ['HOSTS', 'LOST_HOST', 'OpenStack', 'Server']

ROOT: Final = Path(__file__).parents[2]
HOSTS: Final = ('cmp1', 'cmp2')
LOST_HOST: Final = 'cmp3'
"""A host to be lost: Nova's fake virt driver cannot be started again."""

SPARE_CARD: Final = 'fa4f:0a:00.0'
"""Card of class VGPU in the second host and in the host to be lost."""

_NOVA_DATABASES: Final = ('nova_api', 'nova_cell0', 'nova_cell1', 'placement')
_DATABASE: Final = os.environ.get('CYBORG_LITE_TEST_NOVA_DATABASE', 'mariadb')
"""Server of the database of this service; that of Nova is MariaDB."""


class OpenStack(OpenStackClient):
    """The running cloud, with three compute hosts."""

    def __init__(
        self, directory: Path, keystone: RealKeystone, glance: RealGlance
    ) -> None:
        self._ports = {name: free_port() for name in ('placement', 'nova', 'cyborg')}
        urls = {
            'placement': f'http://127.0.0.1:{self._ports["placement"]}',
            'compute': f'http://127.0.0.1:{self._ports["nova"]}/v2.1',
            'accelerator': f'http://127.0.0.1:{self._ports["cyborg"]}/v2',
        }
        super().__init__(keystone, urls)
        self.directory = directory
        self.glance = glance
        self.proxy = LossyProxy(f'http://127.0.0.1:{self._ports["cyborg"]}')
        """Stands between Nova and the API of this service."""
        self.services: dict[str, str] = {}
        """Ids of the services in Keystone by type."""
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        self._publish_services()
        self._prepare_servers()
        self._start_placement()
        self._start_nova()
        self._start_cyborg()
        self._wait_until_ready()
        return self

    def __exit__(self, *trouble: object) -> None:
        for child in reversed(self.children.values()):
            child.kill()
        self._cleanup.close()

    # --- start ---

    def _publish_services(self) -> None:
        services = self.keystone.person(
            'nova', self.service_project, 'service', 'admin'
        )
        self._auth = config.AUTH.format(
            url=self.keystone.url,
            user=services.user,
            password=PASSWORD,
            project=services.project_id,
        )
        network = ThreadingHTTPServer(('127.0.0.1', 0), NetworkHandler)
        threading.Thread(target=network.serve_forever, daemon=True).start()
        self._cleanup.callback(network.shutdown)
        self._cleanup.enter_context(self.proxy)
        urls = {
            **self.urls,
            'accelerator': f'{self.proxy.url}/v2',
            'network': f'http://127.0.0.1:{network.server_address[1]}',
            'image': self.glance.endpoint,
        }
        for service_type, url in urls.items():
            published = self.keystone.publish(service_type, url)
            self.services[service_type] = published
            self._cleanup.callback(self.keystone.withdraw, published)

    def _prepare_servers(self) -> None:
        self._transports = [
            self._cleanup.enter_context(rabbitmq.virtual_host()) for _ in range(2)
        ]
        self._databases: dict[str, str] = {}
        servers = {**dict.fromkeys(_NOVA_DATABASES, 'mariadb'), 'cyborg': _DATABASE}
        for name, server in servers.items():
            database = fresh_database(server)
            self._databases[name] = next(database)
            self._cleanup.callback(next, database, None)

    def _start_placement(self) -> None:
        path = self.directory / 'placement.conf'
        path.write_text(
            config.PLACEMENT.format(
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
        self.write_nova_config('nova-api').rename(folder / 'nova.conf')
        program = config.NOVA_API.format(port=self._ports['nova'])
        self._start('nova-api', [sys.executable, '-c', program])
        for binary in ('nova-conductor', 'nova-scheduler'):
            self._start(binary, self._nova_command(binary, binary))
        for host in (*HOSTS, LOST_HOST):
            name = f'nova-compute-{host}'
            self._start(name, self._nova_command('nova-compute', name, host))

    def _migrate_nova(self) -> None:
        cell0 = self._databases['nova_cell0']
        for arguments in (
            ['api_db', 'sync'],
            ['cell_v2', 'map_cell0', '--database_connection', cell0],
            ['db', 'sync'],
            ['cell_v2', 'create_cell', '--name', 'cell1'],
        ):
            command = [*self._nova_command('nova-manage', 'nova-manage'), *arguments]
            subprocess.run(command, check=True, capture_output=True)

    def _nova_command(self, binary: str, name: str, host: str = HOSTS[0]) -> list[str]:
        program = Path(sys.executable).with_name(binary)
        return [str(program), '--config-file', str(self.write_nova_config(name, host))]

    def write_nova_config(
        self, name: str, host: str = HOSTS[0], options: str = ''
    ) -> Path:
        """Write the configuration file of a service of Nova.

        :param options: further lines, which replace the same options above them
        """
        path = self.directory / f'{name}.conf'
        text = config.NOVA.format(
            host=host,
            name=name,
            directory=self.directory,
            transport_url=self._transports[0],
            api_database=self._databases['nova_api'],
            database=self._databases['nova_cell1'],
            url=self.keystone.url,
            auth=self._auth,
        )
        path.write_text(text + options)
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

    def start_cyborg(
        self, name: str, binary: str, host: str = HOSTS[0], options: str = ''
    ) -> None:
        """Start a daemon of this service.

        :param options: further lines of its configuration file
        """
        self._start(name, self._cyborg_command(binary, host, options))

    @property
    def connection(self) -> str:
        """The URL of the database of this service."""
        return self._databases['cyborg']

    def start_agent(self, host: str) -> None:
        """Start the agent of a host and wait until it is ready."""
        self._start_until_ready(f'agent-{host}', 'agent', host)

    def restart_conductor(self, options: str = '') -> None:
        """Kill the conductor, start it with other options, wait until it is ready."""
        self.kill('conductor')
        self._start_until_ready('conductor', 'conductor', options=options)

    def _start_until_ready(
        self, name: str, binary: str, host: str = HOSTS[0], options: str = ''
    ) -> None:
        before = self.read_output(name).count('Ready.')
        self.start_cyborg(name, binary, host, options)
        self.until(
            lambda: self.read_output(name).count('Ready.') > before, f'{name} is ready'
        )

    def read_output(self, name: str) -> str:
        """Return what all processes of this name have printed."""
        return (self.directory / f'{name}.out').read_text(errors='replace')

    def _cyborg_command(self, binary: str, host: str, options: str = '') -> list[str]:
        path = self.write_cyborg_config(host, options)
        return [sys.executable, '-m', find_module(binary), '--config-file', str(path)]

    def write_cyborg_config(self, host: str, options: str = '') -> Path:
        """Write the configuration file of a daemon of this service.

        :param options: further lines, which replace the same options above them
        """
        path = self.directory / f'cyborg-lite-{host}.conf'
        text = config.CYBORG.format(
            host=host,
            drivers='fake_driver,cards_driver' if host in HOSTS else 'cards_driver',
            directory=self.directory,
            transport_url=self._transports[1],
            port=self._ports['cyborg'],
            connection=self._databases['cyborg'],
            url=self.keystone.url,
            auth=self._auth,
        )
        path.write_text(text + write_lines(self.directory, host) + options)
        return path

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

    def start_module(
        self,
        name: str,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Start a module as a process."""
        command = [sys.executable, '-m', module, *arguments]
        return self._start(name, command, environment)

    def _start(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        child = Child(name, self.directory / f'{name}.out')
        child.start(command, {**self._environment(), **(environment or {})})
        self.children[name] = child
        return child

    def manage(self, *arguments: str) -> str:
        """Run an operator's command and return its output."""
        command = [*self._cyborg_command('manage', HOSTS[0]), *arguments]
        environment = {**os.environ, **self._environment()}
        process = subprocess.run(
            command, check=False, env=environment, capture_output=True, text=True
        )
        return process.stdout + process.stderr

    def kill(self, name: str) -> None:
        """Kill a process."""
        self.children.pop(name).kill()

    def _wait_until_ready(self) -> None:
        def has_providers() -> bool:
            names = {provider['name'] for provider in self.providers()}
            cards = {f'{host}_fa4f:0{n}:00.0' for n, host in enumerate(HOSTS, 1)}
            cards |= {f'{HOSTS[1]}_{SPARE_CARD}', f'{LOST_HOST}_{SPARE_CARD}'}
            return cards <= names and {f'{h}_FakeDevice' for h in HOSTS} <= names

        hosts = {*HOSTS, LOST_HOST}
        self.until(lambda: hosts <= self.list_up_hosts(), 'the compute API answers')
        self.until(lambda: hosts <= self.list_mapped_hosts(), 'Nova maps the hosts')
        self.until(has_providers, 'Placement has the devices of both hosts')
        self.image = self.glance.upload(b'guest', (), {})

    def list_up_hosts(self) -> set[str]:
        """Return the hosts whose nova-compute is up; empty if Nova does not answer."""
        try:
            services = self.compute_services()
        except (requests.RequestException, AssertionError):
            return set()
        return {host for host, row in services.items() if row['state'] == 'up'}

    def list_mapped_hosts(self) -> set[str]:
        """Return the hosts that nova-scheduler has mapped to their cell."""
        rows = self.compute('GET', '/os-hypervisors')['hypervisors']
        return {row['hypervisor_hostname'] for row in rows}

    # Any: JSON.
    def compute_services(self) -> dict[str, dict[str, Any]]:
        """Return the services nova-compute by host."""
        path = '/os-services?binary=nova-compute'
        return {row['host']: row for row in self.compute('GET', path)['services']}

    def accept_servers(self, host: str, accepted: bool = True) -> None:
        """Enable or disable the compute service of a host."""
        path = f'/os-services/{self.compute_services()[host]["id"]}'
        status = 'enabled' if accepted else 'disabled'
        self.compute('PUT', path, {'status': status})

    # --- cards ---

    # Any: fields of a card have any type.
    def add_card(self, host: str, address: str, **fields: Any) -> None:
        """Plug a card into a host. The fields are those of the driver."""
        card = {'address': address, 'units': 2, 'resource_class': 'PGPU', **fields}
        path = self.directory / f'cards-{host}' / f'{address}.json'
        path.write_text(json.dumps(card))

    def remove_card(self, host: str, address: str) -> None:
        """Pull a card out of a host, if it is there."""
        path = self.directory / f'cards-{host}' / f'{address}.json'
        path.unlink(missing_ok=True)

    def nova_file(self, host: str) -> Path:
        """Return the file that the agent of a host reads as that of Nova."""
        return self.directory / f'nova-of-{host}.conf'

    def delay(self, host: str, seconds: float) -> None:
        """Let the driver of a host take this long to prepare or refuse its card."""
        path = self.directory / f'cards-{host}' / 'delay'
        path.write_text(str(seconds))

    def refuse(self, host: str, refused: bool = True) -> None:
        """Let the driver of a host refuse to prepare its card, or stop to."""
        path = self.directory / f'cards-{host}' / 'refuse'
        if refused:
            path.touch()
        else:
            path.unlink(missing_ok=True)
