# SPDX-License-Identifier: Apache-2.0
"""An agent that is not root makes vGPUs through the process that is."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.kit import HurtCloud
from tests.fakes import privileged_process, rabbitmq, unprivileged
from tests.fakes.stack import Instance
from tests.fakes.unprivileged import NOBODY, Elevator
from tests.fakes.vgpu_machine import GENERATIONS, VgpuHost, handed, running

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which('setpriv') is None,
    reason='needs root, and setpriv to be less',
)


@pytest.fixture(scope='module')
def directory() -> Iterator[Path]:
    """That others may enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix='cyborg-lite-'))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope='module')
def cloud(directory: Path) -> Iterator[HurtCloud]:
    with rabbitmq.virtual_host() as url, running(directory, url) as made:
        yield made


class UnprivilegedHost(VgpuHost):
    """Its agent is run by nobody."""

    def __init__(self, cloud: HurtCloud, directory: Path, name: str) -> None:
        super().__init__(cloud, directory / name, GENERATIONS[name])
        unprivileged.give(self.root / 'run/cyborg-lite', self.directory / 'agent')
        self.elevator = Elevator(
            {**self.service.environment(''), privileged_process.ROOT: str(self.root)}
        )
        self.module = unprivileged.__name__
        self.settings = {'privileged_command': self.elevator.command}

    def __exit__(self, *trouble: object) -> None:
        super().__exit__(*trouble)
        self.elevator.close()


@pytest.fixture
def host(
    cloud: HurtCloud, directory: Path, request: pytest.FixtureRequest
) -> Iterator[UnprivilegedHost]:
    name: str = getattr(request, 'param', 'mdevs')
    with UnprivilegedHost(cloud, directory, name) as made:
        yield made


def privileged_of(host: UnprivilegedHost) -> int:
    """The one that the agent has; its name is in the arguments it was started with."""
    (socket,) = (one for one in host.elevator.asked[-1] if one.endswith('.sock'))
    for process in Path('/proc').glob('[0-9]*'):
        try:
            said = (process / 'cmdline').read_bytes()
        except OSError:
            continue
        if socket.encode() in said:
            return int(process.name)
    raise AssertionError('it does not run')


def boot(host: UnprivilegedHost) -> Instance:
    guest = host.boot_bound(0)
    assert handed(guest) <= host.made()
    return guest


@pytest.mark.parametrize('host', ['mdevs', 'types of virtual functions'], indirect=True)
def test_what_a_guest_needs_is_made_by_another_process(host: UnprivilegedHost) -> None:
    before = host.made()
    agent = host.start_agent()
    assert (Path('/proc') / str(agent.group.pid)).stat().st_uid == NOBODY
    # To look at a host needs no rights.
    assert host.elevator.asked == []
    guest = boot(host)
    (asked,) = host.elevator.asked
    assert 'cyborg_lite.drivers.privileged.CONTEXT' in asked
    host.end(guest)
    assert host.made() == before


def test_a_privileged_process_that_dies_is_started_anew(host: UnprivilegedHost) -> None:
    before = host.made()
    host.start_agent()
    host.end(boot(host))
    os.kill(privileged_of(host), signal.SIGKILL)
    host.end(boot(host))
    assert len(host.elevator.asked) == 2
    assert host.made() == before


def test_what_was_made_is_undone_by_an_agent_that_was_restarted(
    host: UnprivilegedHost,
) -> None:
    before = host.made()
    host.start_agent()
    guest = boot(host)
    host.kill_agent()
    host.start_agent()
    host.end(guest)
    assert host.made() == before


def test_without_the_rights_the_reason_is_said_and_nobody_is_blamed(
    host: UnprivilegedHost,
) -> None:
    before = host.made()
    host.settings['privileged_command'] = '/nowhere/sudo -n privsep-helper'
    host.start_agent()
    guest = host.boot_on(0)
    host.cloud.until(guest.resolved, 'Nova hears of every request')
    assert guest.states() == {'BindFailed'}
    query = f"SELECT status_reason FROM arqs WHERE uuid = '{guest.arqs[0]}'"
    ((reason,),) = host.cloud.rows(query)
    assert 'the privileged process does not start' in reason
    host.end(guest)
    assert host.made() == before
