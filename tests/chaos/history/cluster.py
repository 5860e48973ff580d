# SPDX-License-Identifier: Apache-2.0
"""Cloud of several APIs, conductors and hosts, with a proxy before each peer."""

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from email.message import Message
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit, urlunsplit

from sqlalchemy import make_url

from devstack.launcher.configuration import free_port
from devstack.launcher.processes import Child
from devstack.launcher.rest import Service
from tests.builders import driver_packages
from tests.chaos.history import faulty_daemon, steps_table
from tests.chaos.history.recorded_driver import (
    DELAY,
    RECORD,
    SIZE,
    RecordedDriver,
    read_record,
)
from tests.chaos.history.records import History, HostStep, Operation, Receipt
from tests.chaos.history.schedule import APIS, CONDUCTORS, HOSTS
from tests.chaos.history.steps_table import StepsTable
from tests.chaos.history.tcp_proxy import Mode, TcpProxy
from tests.doubles.nova import FakeNova
from tests.servers.stack import NOVA, Cloud, Options, expect
from tests.support.programs import find_module

_VERSION: Final = {'OpenStack-API-Version': 'accelerator 2.4'}
_PORTS: Final = {'mysql': 3306, 'postgresql': 5432}

_OPTIONS: Final[Options] = {
    'DEFAULT': {'rpc_response_timeout': 6},
    'agent': {'enabled_drivers': 'recorded_driver'},
    'conductor': {
        'job_lease': 3,
        'agent_timeout': 5,
        'bind_deadline': 60,
        'agent_down_after': 12,
    },
    'oslo_messaging_rabbit': {
        'rabbit_retry_interval': 1,
        'rabbit_retry_backoff': 0,
        'rabbit_interval_max': 1,
    },
}


class RecordingNova(FakeNova):
    """Receiver of events that records what Nova could read at each receipt."""

    def __init__(self, table: StepsTable) -> None:
        super().__init__()
        self.receipts: list[Receipt] = []
        self._table = table

    def answer(
        self, path: str, headers: Message, raw: bytes
    ) -> tuple[int, dict[str, Any]]:
        events = [
            (event, self._table.last_step(event['tag']), time.time())
            for event in json.loads(raw)['events']
        ]
        status, body = super().answer(path, headers, raw)
        if status < 300:
            self.receipts += [
                Receipt(at, event['tag'], event['server_uuid'], event['status'], step)
                for event, step, at in events
            ]
        return status, body


class Cluster(Cloud):
    """Cloud whose daemons and connections have names, such as ``conductor1``."""

    forks = False  # modules are imported after the clock is replaced

    nova: RecordingNova

    def __init__(self, directory: Path, transport_url: str, connection: str) -> None:
        super().__init__(
            directory,
            transport_url=transport_url,
            connection=connection,
            options=_OPTIONS,
        )
        self.hosts: list[tuple[str, str]] = []
        """Name and provider of each host."""
        self.devices: list[str] = []
        self.profiles: dict[int, str] = {}
        """Profile by number of ARQs."""
        self.connection = connection
        self.steps = StepsTable(connection)
        with self.nova:  # closes the socket of the receiver that is replaced
            self.nova = RecordingNova(self.steps)
        self.daemons: dict[str, Child] = {}
        self._transport_url = transport_url
        self._ports = [free_port() for _ in range(APIS)]
        self._names: list[str] = []
        self._links: dict[tuple[str, str], TcpProxy] = {}
        self._stack = ExitStack()
        site = driver_packages.install(RecordedDriver, directory / 'site')
        self.python_path.append(site)

    def __enter__(self) -> Self:
        super().__enter__()
        self._names = [self.host, *(self.next_host() for _ in range(HOSTS - 1))]
        self.migrate()
        steps_table.create(self.connection)
        names = [
            *(f'conductor{number}' for number in range(CONDUCTORS)),
            *(f'agent{number}' for number in range(HOSTS)),
            *(f'api{number}' for number in range(APIS)),
        ]
        for name in names:
            self.launch(name)
        for name in names:
            self._wait(self.daemons[name])
        self.hosts = [(name, self._provider(name)) for name in self._names]
        self.devices = [self._device(name) for name in self._names]
        self.profiles = {count: self._create_profile(count) for count in (1, 2)}
        return self

    def __exit__(self, *trouble: object) -> None:
        for child in self.daemons.values():
            child.kill()
        super().__exit__(*trouble)
        self._stack.close()
        self.steps.close()

    # --- daemons ---

    def _wait(self, child: Child) -> None:
        child.until(lambda: 'Ready.' in self.log(child))

    def launch(self, name: str) -> None:
        """Start a daemon without waiting, also in place of a killed one."""
        self.daemons[name] = self._begin(name, self._build_options(name))

    def launch_twin(self, agent: str) -> Child:
        """Start a second agent of a host, with a state of its own."""
        options = self._build_options(agent)
        twin_state = {'state_path': self.directory / f'{agent}-twin-state'}
        options['agent'] = {**options['agent'], **twin_state}
        return self._begin(f'{agent}-twin', options)

    def _begin(self, name: str, options: dict[str, dict[str, object]]) -> Child:
        binary = name.split('-', maxsplit=1)[0].rstrip('0123456789')
        child = self.begin(
            name,
            binary,
            [],
            options,
            module=faulty_daemon.__name__,
            environment={
                faulty_daemon.MODULE: find_module(binary),
                faulty_daemon.FILE: str(self._faults_file(name)),
            },
        )
        return child

    def _build_options(self, name: str) -> dict[str, dict[str, object]]:
        binary, number = name.rstrip('0123456789'), int(name[-1])
        options: dict[str, dict[str, object]] = {
            'DEFAULT': {'transport_url': self._broker_url(name), 'host': name}
        }
        if binary == 'api':
            options['api'] = {'port': self._ports[number]}
        if binary == 'agent':
            folder = self._host_directory(number) / 'files'
            folder.mkdir(parents=True, exist_ok=True)
            options['DEFAULT']['host'] = self._names[number]
            options['agent'] = {'state_path': folder.parent / 'state'}
            options['recorded_driver'] = {'folder': folder, 'pause': 0.02}
        if binary == 'conductor':
            options['database'] = {'connection': self._database_url(name)}
            options['placement'] = {
                'endpoint_override': self._url(
                    name, 'placement', self.placement.endpoint
                )
            }
            options['nova'] = {
                'endpoint_override': self._url(name, 'nova', self.nova.endpoint)
            }
        return options

    def set_faults(self, name: str, faults: Mapping[str, float]) -> None:
        """Replace the faults inside a daemon."""
        path = self._faults_file(name)
        part = path.with_suffix('.part')
        part.write_text(json.dumps(faults))
        part.rename(path)

    def _faults_file(self, name: str) -> Path:
        return self.directory / f'{name}.faults'

    # --- connections ---

    def set_link(self, name: str, peer: str, mode: Mode) -> None:
        """Change the connections of a daemon to a peer."""
        self._links[name, peer].set(mode)

    def _link(self, name: str, peer: str, host: str, port: int) -> int:
        if (name, peer) not in self._links:
            proxy = self._stack.enter_context(TcpProxy(host, port))
            self._links[name, peer] = proxy
        return self._links[name, peer].port

    def _database_url(self, name: str) -> str:
        url = make_url(self.connection)
        port = url.port or _PORTS[url.get_backend_name()]
        port = self._link(name, 'database', url.host or '127.0.0.1', port)
        url = url.set(host='127.0.0.1', port=port)
        return url.render_as_string(hide_password=False)

    def _broker_url(self, name: str) -> str:
        return self._url(name, 'broker', self._transport_url)

    def _url(self, name: str, peer: str, url: str) -> str:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        port = self._link(name, peer, parts.hostname, parts.port)
        user, separator, _ = parts.netloc.rpartition('@')
        netloc = f'{user}{separator}127.0.0.1:{port}'
        return urlunsplit(parts._replace(netloc=netloc))

    # --- objects ---

    def service(self, number: int) -> Service:
        """Return an API for Nova."""
        return Service(f'http://127.0.0.1:{self._ports[number]}', NOVA | _VERSION)

    def _provider(self, host: str) -> str:
        self.host = host
        return self.provider_of('VGPU')

    def _device(self, host: str) -> str:
        answer = self.service(0).ask('GET', f'/v2/devices?hostname={host}')
        return str(expect(answer, 200)['devices'][0]['uuid'])

    def _create_profile(self, count: int) -> str:
        name = f'vgpu-{count}'
        body = [{'name': name, 'groups': [{'resources:VGPU': str(count)}]}]
        expect(self.service(0).ask('POST', '/v2/device_profiles', body), 201)
        return name

    def resize(self, host: int, size: int) -> None:
        """Change the number of handles that a host reports."""
        self._write(host, SIZE, str(size))

    def delay_hosts(self, seconds: float) -> None:
        """Change the time that a host needs to prepare a handle."""
        for host in range(HOSTS):
            self._write(host, DELAY, str(seconds))

    def _write(self, host: int, name: str, text: str) -> None:
        path = self._host_directory(host) / name
        part = path.with_suffix('.part')
        part.write_text(text)
        part.rename(path)

    def _host_directory(self, number: int) -> Path:
        return self.directory / f'host{number}'

    # --- history ---

    def read_history(self, operations: list[Operation]) -> History:
        """Return the history so far."""
        steps, claims = self.steps.read()
        return History(
            operations=list(operations),
            steps=steps,
            claims=claims,
            receipts=list(self.nova.receipts),
            host_steps=self.read_host_steps(),
        )

    def clear_history(self) -> None:
        """Delete all records."""
        self.steps.clear()
        self.nova.receipts.clear()
        for number in range(HOSTS):
            (self._host_directory(number) / RECORD).unlink(missing_ok=True)

    def read_host_steps(self) -> list[HostStep]:
        """Return the actions of the drivers of all hosts."""
        paths = (self._host_directory(number) / RECORD for number in range(HOSTS))
        return [step for path in paths for step in read_record(path)]

    def list_prepared(self) -> list[str]:
        """Return the ARQs that have a handle prepared on any host."""
        folders = (self._host_directory(number) / 'files' for number in range(HOSTS))
        return sorted(
            file.read_text() for folder in folders for file in folder.iterdir()
        )
