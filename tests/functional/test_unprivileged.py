# SPDX-License-Identifier: Apache-2.0
"""Agent that is not root and creates vGPUs through the privileged process."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts import privileged_process
from tests.hosts.privileged_process import install_privileges
from tests.servers import rabbitmq, unprivileged_agent
from tests.servers.stack import Instance
from tests.servers.unprivileged_agent import NOBODY, Elevator
from tests.servers.vgpu_machine import GENERATIONS, VgpuHost, read_vgpus, run_cloud

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which('setpriv') is None,
    reason='needs root, and setpriv to be less',
)


@pytest.fixture(scope='module')
def directory() -> Iterator[Path]:
    """Yield a directory that other users may enter, unlike those of pytest."""
    temporary = Path(tempfile.mkdtemp(prefix='cyborg-lite-'))
    temporary.chmod(0o755)
    yield temporary
    shutil.rmtree(temporary)


@pytest.fixture(scope='module')
def cloud(directory: Path) -> Iterator[FaultyCloud]:
    with rabbitmq.virtual_host() as url, run_cloud(directory, url) as temporary:
        yield temporary


class UnprivilegedHost(VgpuHost):
    """Host whose agent runs as the user nobody."""

    def __init__(self, cloud: FaultyCloud, directory: Path, name: str) -> None:
        # A state directory serves one host only, and each test has its own.
        folder = Path(tempfile.mkdtemp(prefix=f'{name}-', dir=directory))
        folder.chmod(0o755)
        super().__init__(cloud, folder, GENERATIONS[name])
        unprivileged_agent.give(self.root / 'run/cyborg-lite', self.directory / 'agent')
        install_privileges(self.root)
        self.elevator = Elevator(
            {**self.service.environment(''), privileged_process.ROOT: str(self.root)}
        )
        self.module = unprivileged_agent.__name__
        self.settings = {'privileged_command': self.elevator.command}

    def __exit__(self, *trouble: object) -> None:
        super().__exit__(*trouble)
        self.elevator.close()


@pytest.fixture
def host(
    cloud: FaultyCloud, directory: Path, request: pytest.FixtureRequest
) -> Iterator[UnprivilegedHost]:
    name: str = getattr(request, 'param', 'mdevs')
    with UnprivilegedHost(cloud, directory, name) as temporary:
        yield temporary


def privileged_of(host: UnprivilegedHost) -> int:
    """Return the pid of the agent's privileged process, found by its socket."""
    (socket,) = (word for word in host.elevator.commands[-1] if word.endswith('.sock'))
    for process in Path('/proc').glob('[0-9]*'):
        try:
            arguments = (process / 'cmdline').read_bytes()
        except OSError:
            continue
        if socket.encode() in arguments:
            return int(process.name)
    raise AssertionError('it does not run')


def boot(host: UnprivilegedHost) -> Instance:
    guest = host.boot_bound(0)
    assert read_vgpus(guest) <= host.list_vgpus()
    return guest


@pytest.mark.parametrize('host', ['mdevs', 'types of virtual functions'], indirect=True)
def test_bind_creates_vgpu_by_privileged_process(host: UnprivilegedHost) -> None:
    before = host.list_vgpus()
    agent = host.start_agent()
    assert (Path('/proc') / str(agent.group.pid)).stat().st_uid == NOBODY
    # A scan needs no privileges.
    assert host.elevator.commands == []
    guest = boot(host)
    (command,) = host.elevator.commands
    assert 'cyborg_lite.drivers.host.privileged.CONTEXT' in command
    host.end(guest)
    assert host.list_vgpus() == before


def test_privileged_process_killed_is_started_again(host: UnprivilegedHost) -> None:
    before = host.list_vgpus()
    host.start_agent()
    host.end(boot(host))
    os.kill(privileged_of(host), signal.SIGKILL)
    host.end(boot(host))
    assert len(host.elevator.commands) == 2
    assert host.list_vgpus() == before


def test_vgpus_are_removed_after_agent_restart(host: UnprivilegedHost) -> None:
    before = host.list_vgpus()
    host.start_agent()
    guest = boot(host)
    host.kill_agent()
    host.start_agent()
    host.end(guest)
    assert host.list_vgpus() == before


def test_missing_privileges_fail_bind_with_reason(host: UnprivilegedHost) -> None:
    before = host.list_vgpus()
    host.settings['privileged_command'] = '/nowhere/sudo -n privsep-helper'
    host.start_agent()
    guest = host.boot_on(0)
    host.cloud.until(guest.is_resolved, 'Nova receives an event per ARQ')
    assert guest.states() == {'BindFailed'}
    query = f"SELECT status_reason FROM arqs WHERE uuid = '{guest.arqs[0]}'"
    ((reason,),) = host.cloud.rows(query)
    assert 'the privileged process does not start' in reason
    host.end(guest)
    assert host.list_vgpus() == before
