# SPDX-License-Identifier: Apache-2.0
"""A cloud in one process: real conductors, agents and API over simulated peers."""

import json
import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import oslo_messaging
import webob
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.agent.inventory.hardware_monitor import AgentIntervals
from cyborg_lite.agent.service import AgentResources, AgentService
from cyborg_lite.api.app import assemble
from cyborg_lite.conductor.arqs.binding import BindRules
from cyborg_lite.conductor.arqs.nova_support import NovaRules
from cyborg_lite.conductor.jobs.runner import Workers
from cyborg_lite.conductor.service import (
    ConductorService,
    ConductorSettings,
    Connections,
)
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.rpc import transport
from cyborg_lite.rpc.client import connect_conductor
from cyborg_lite.rpc.local import broker, driver
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.security.signing import Signer
from tests.chaos.history import steps_table
from tests.chaos.history.records import HostStep
from tests.doubles.rebootable_host import boot
from tests.servers.databases import create_sqlite_file
from tests.simulation import scheduler
from tests.simulation.hosts import CardDriver, Cards, happens
from tests.simulation.peers import (
    DATABASE,
    REAL_CLOCK,
    Faults,
    SimulatedDatabase,
    SimulatedNova,
    SimulatedPlacement,
    watch_jobs,
)

HOSTS: Final = ('node1', 'node2')
CONDUCTORS: Final = ('ctl1', 'ctl2')
BIND_DEADLINE: Final = 60  # seconds
_ADDRESSES: Final = ('fa4f:0c:00.0', 'fa4f:0d:00.0')
_URL: Final = 'local://simulation'
_SECRET: Final = 's' * 32
_RPC_TIMEOUT: Final = 10  # seconds
_AGENT: Final = AgentIntervals(
    discovery_interval=60.0, heartbeat_interval=30.0, driver_timeout=30.0
)


@dataclass
class Cloud:
    """The nodes and their peers. A node is a conductor or a host."""

    directory: Path
    faults: Faults = field(default_factory=Faults)
    host_steps: list[HostStep] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connection = create_sqlite_file(self.directory / 'database.sqlite')
        steps_table.create(self.connection, f'{REAL_CLOCK}()')
        with sqlite3.connect(self.directory / 'database.sqlite') as connection:
            watch_jobs(connection)
        self.steps = steps_table.StepsTable(self.connection)
        self.placement = SimulatedPlacement(self.faults)
        self.nova = SimulatedNova(self.faults, self.steps)
        self.cards = {name: Cards(name, _ADDRESSES, self.host_steps) for name in HOSTS}
        self._boots = dict.fromkeys(HOSTS, 0)
        self._starts: dict[str, int] = defaultdict(int)
        self._running: dict[str, str] = {}  # name of the running process by node
        self._listeners: dict[str, list[Any]] = defaultdict(list)
        self._messages: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._check: Callable[[], None] = lambda: None
        self.stepped_at = 0.0
        self.requests: list[str] = []
        """Lines about the requests to the API, for traces."""
        self._watch_bus()
        # An idle worker of the library looks around each second.
        for worker in scheduler.Thread.__subclasses__():
            if hasattr(worker, 'MAX_IDLE_FOR'):
                worker.MAX_IDLE_FOR = 3600  # seconds
        bus = _connect(Peer(Role.API))
        self._bus = bus  # keeps the broker while no node uses it
        conf = _configure()
        conf.set_override('auth_strategy', 'noauth', 'api')
        self._application = assemble(conf, connect_conductor(bus))

    # --- nodes ---

    def start(self) -> None:
        """Create the compute nodes in Placement and start all nodes."""
        for host in HOSTS:
            self.placement.create_provider(str(uuid4()), host, None)
            self.boot_host(host)
        for name in (*CONDUCTORS, *HOSTS):
            self.start_node(name)

    def boot_host(self, host: str) -> None:
        """Boot a host: what was prepared is lost."""
        self._boots[host] += 1
        boot(self.directory / host, f'{host}-boot-{self._boots[host]}')
        self.cards[host].boot()
        for server in self.nova.servers.values():
            server.is_active &= server.host != host

    def start_node(self, name: str) -> None:
        """Start the process of a node."""
        self._starts[name] += 1
        process = f'{name}.{self._starts[name]}'
        self._running[name] = process
        start = self._start_agent if name in HOSTS else self._start_conductor
        scheduler.find_scheduler().start(process, lambda: start(name), node=process)

    def kill_node(self, name: str) -> None:
        """Kill the process of a node."""
        process = self._running.pop(name)
        scheduler.find_scheduler().kill(process)
        for queues, listener in self._listeners.pop(process, []):
            queues.leave(listener)

    def freeze_node(self, name: str, seconds: float) -> None:
        """Let the process of a node stand still for a time."""
        process = self._running[name]
        scheduler.find_scheduler().freeze(process)
        scheduler.sleep(seconds)
        scheduler.find_scheduler().thaw(process)

    def is_running(self, name: str) -> bool:
        """Check whether a node was started and not killed."""
        return name in self._running

    def _start_conductor(self, name: str) -> None:
        connections = Connections(
            transport=_connect(Peer(Role.CONDUCTOR, name)),
            database=SimulatedDatabase(
                self.connection, self.faults, lambda: self._check()
            ),
            placement=self.placement,
            nova=self.nova,
        )
        rules = BindRules(
            deadline=BIND_DEADLINE,
            event_deadline=300,
            require_allocation=True,
            nova=NovaRules(attaches_mdev=True),
        )
        settings = ConductorSettings(
            host=name,
            rules=rules,
            workers=Workers(16, 4),
            job_lease=10,
            agent_timeout=20,
            agent_down_after=100,
            placement_audit_interval=3600,
            audit_interval=3600,
            orphan_grace=600,
            reap_orphans=True,
            metrics_host='',
            metrics_ports=range(0),
            serves_each_device=False,
            load_timeout=60,
            largest_image=1 << 20,
        )
        ConductorService(connections, settings).start()

    def _start_agent(self, name: str) -> None:
        root = self.directory / name
        host = Host(name, root, has_system_disk=False)
        resources = AgentResources(
            host,
            {CardDriver.NAME: CardDriver(host, {'cards': self.cards[name]})},
            root / 'state',
        )
        bus = _connect(Peer(Role.AGENT, name))
        AgentService(bus, resources, _AGENT).start()

    # --- API ---

    # Any: JSON.
    def ask(
        self, method: str, path: str, body: Any = None, version: str = '2.4'
    ) -> webob.Response:
        """Send a request of Nova to the API."""
        headers = {
            'X-User-Id': 'nova',
            'X-Project-Id': 'a' * 32,
            'X-Roles': 'admin,member,reader,service',
            'X-Service-Roles': 'service',
            'OpenStack-API-Version': f'accelerator {version}',
        }
        options = {} if body is None else {'json': body}
        request = webob.Request.blank(path, method=method, headers=headers, **options)
        request.content_type = 'application/json'
        scheduler.pause()
        response = request.get_response(self._application)
        self.requests.append(
            f'{time.monotonic():.3f} {method} {path} {json.dumps(body)}: '
            f'{response.status_int}'
        )
        return response

    # --- invariants ---

    def watch(self, check: Callable[[], None]) -> None:
        """Call a function after each transaction."""
        self._check = check

    def read_journal(self, host: str) -> str:
        """Return the file with the prepared handles of a host; empty: none."""
        file = self.directory / host / 'state' / 'handles.json'
        return file.read_text() if file.exists() else ''

    def step_database_clock(self, seconds: float) -> None:
        """Set the clock of the database wrong by some seconds."""
        scheduler.find_scheduler().offsets[DATABASE] = seconds
        self.stepped_at = time.monotonic()

    def save_database(self) -> None:
        """Keep a copy of the database."""
        self._copy_database('database.sqlite', 'copy.sqlite')

    def restore_database(self) -> None:
        """Put the copy back while no conductor and no agent runs."""
        nodes = *CONDUCTORS, *HOSTS
        for name in nodes:
            self.kill_node(name)
        self._copy_database('copy.sqlite', 'database.sqlite')
        SimulatedDatabase.count_change()
        for name in nodes:
            self.start_node(name)

    def count_incarnations(self) -> Mapping[str, int]:
        """Return the number of incarnations, and of quarantines that have not ended."""
        query = 'SELECT count(*), count(*) - count(began_at) FROM incarnations'
        with closing(sqlite3.connect(self.directory / 'database.sqlite')) as opened:
            counts = opened.execute(query).fetchone()
        return dict(zip(('incarnations', 'quarantines'), counts, strict=True))

    def _copy_database(self, source: str, target: str) -> None:
        with (
            closing(sqlite3.connect(self.directory / source)) as original,
            closing(sqlite3.connect(self.directory / target)) as copy,
        ):
            original.backup(copy)

    # --- message bus ---

    def _watch_bus(self) -> None:
        """Know the listeners of each process, and lose messages."""
        join, send = broker.Broker.join, driver.LocalDriver.send

        def join_as_process(queues: broker.Broker, keys: Any) -> Any:
            listener = join(queues, keys)
            process = scheduler.find_scheduler().current.node
            self._listeners[process].append((queues, listener))
            return listener

        def send_or_lose(
            bus: driver.LocalDriver, target: Any, *arguments: Any, **options: Any
        ) -> Any:
            scheduler.pause()
            self._record_message(bus, target, *arguments)
            is_lost = happens(self.faults.request_lost)
            answer = None if is_lost else send(bus, target, *arguments, **options)
            scheduler.pause()
            if options.get('wait_for_reply') and (
                is_lost or happens(self.faults.answer_lost)
            ):
                scheduler.sleep(options.get('timeout') or _RPC_TIMEOUT)
                raise oslo_messaging.MessagingTimeout('A message is lost.')
            return answer

        setattr(broker.Broker, 'join', join_as_process)  # noqa: B010  # of this process
        setattr(driver.LocalDriver, 'send', send_or_lose)  # noqa: B010

    def _record_message(self, *message: Any) -> None:
        """Keep the last messages of each method, as one who reads the bus can."""
        messages = self._messages[message[3].get('method', '')]
        messages.append(message)
        del messages[:-20]

    def replay(self, chance: random.Random) -> None:
        """Send a recorded message again."""
        method = chance.choice(sorted(self._messages))
        bus, *message = chance.choice(self._messages[method])
        driver.LocalDriver.send(bus, *message)


# Any: the library is untyped.
def _connect(peer: Peer) -> Any:
    """Return the connection of a daemon, whose messages are signed."""
    is_conductor = peer.role is Role.CONDUCTOR
    keys = (
        SecretKeys((_SECRET,))
        if is_conductor
        else OwnKeys(peer, (derive_key(_SECRET, peer),))
    )
    return transport.connect(_configure(), _RPC_TIMEOUT, Signer(peer, keys), _URL)


def _configure() -> cfg.ConfigOpts:
    """Return the configuration of a node without any file."""
    return configuration.parse([], 'simulation')
