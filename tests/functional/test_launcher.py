# SPDX-License-Identifier: Apache-2.0
"""devstack/standalone.sh as a newcomer runs it, in the environment of the tests."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from devstack.launcher import environment
from devstack.launcher.configuration import HOST, free_port
from devstack.launcher.processes import read_record
from devstack.launcher.rest import Service
from tests.fakes import sysfs_tree
from tests.fakes.stack import ADMIN, ROOT, expect

SCRIPT: Final = str(ROOT / 'devstack' / 'standalone.sh')
_LIMIT: Final = 180  # seconds


class Launcher:
    """Keeps its things in a directory of the test, and needs no installation."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.port, self.placement_port = free_port(), free_port()
        self.environment = {
            **os.environ,
            'CYBORG_LITE_STANDALONE': str(top),
            'PYTHON': sys.executable,
        }
        for name in ('tests', 'devstack'):  # packages of another project
            (top / name).mkdir()
            (top / name / '__init__.py').touch()
        (top / 'venv').symlink_to(sys.prefix)
        (top / 'installed').write_text(environment.stamp())

    @property
    def command(self) -> list[str]:
        ports = ['--port', str(self.port), '--placement-port', str(self.placement_port)]
        return [SCRIPT, *ports]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments],
            cwd=self.top,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )

    def running(self) -> list[str]:
        """What lives of that which the last run wrote down."""
        record = read_record(self.top / 'running.json')
        return [group.name for group in record if group.members()]

    @property
    def api(self) -> Service:
        return Service(f'http://127.0.0.1:{self.port}', ADMIN)

    def profiles(self) -> list[str]:
        answer = self.api.ask('GET', '/v2/device_profiles')
        return [one['name'] for one in expect(answer, 200)['device_profiles']]


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    made = Launcher(tmp_path)
    yield made
    made.run('--stop')
    assert made.running() == []


def test_the_demo_shows_every_step_and_leaves_nothing(launcher: Launcher) -> None:
    done = launcher.run('--demo')
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r'^   ([a-z ]+): ', done.stdout, re.MULTILINE)
    story = [
        *('profile', 'request', 'allocation', 'bind'),
        *('event', 'bound', 'deleted', 'free again'),
    ]
    assert [step for step in steps if step in story] == story * 2
    assert 'Tesla T4' in done.stdout
    assert 'CUSTOM_NVIDIA_1EB8' in done.stdout
    assert 'so it ends now; --background keeps it running.' in done.stdout
    assert launcher.running() == []


def test_in_the_background_all_is_ready_when_it_returns(launcher: Launcher) -> None:
    assert launcher.run('--background').returncode == 0
    placement = Service(
        f'http://127.0.0.1:{launcher.placement_port}', {'X-Auth-Token': 'admin'}
    )
    found = expect(placement.ask('GET', '/resource_providers'), 200)
    for name in ('0000:3b:00.0', 'FakeDevice'):
        (uuid,) = (
            provider['uuid']
            for provider in found['resource_providers']
            if provider['name'] == f'{HOST}_{name}'
        )
        path = f'/resource_providers/{uuid}/inventories'
        assert expect(placement.ask('GET', path), 200)['inventories']


def test_in_the_background_it_lives_until_it_is_stopped(launcher: Launcher) -> None:
    assert launcher.run('--background', '--demo').returncode == 0
    assert launcher.running() == ['placement', 'nova', 'cyborg-lite']
    shown = subprocess.run(
        ['bash', '-c', '. ./env && env'],
        cwd=launcher.top,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    values = dict(line.partition('=')[::2] for line in shown.splitlines())
    assert values['ACCELERATOR_ENDPOINT'] == f'http://127.0.0.1:{launcher.port}'
    assert values['PLACEMENT_ENDPOINT'] == f'http://127.0.0.1:{launcher.placement_port}'
    assert Path(values['CYBORG_LITE_CONFIG']).is_file()
    assert values['PATH'].startswith(f'{launcher.top}/venv/bin:')
    events = Path(values['NOVA_EVENTS']).read_text().splitlines()
    assert [json.loads(line)['status'] for line in events] == ['completed'] * 2
    stopped = launcher.run('--stop')
    assert (stopped.returncode, stopped.stdout) == (0, 'Stopped.\n')
    assert launcher.run('--stop').stdout == 'Nothing was running.\n'


def test_a_second_run_goes_on_or_begins_anew_as_asked(launcher: Launcher) -> None:
    launcher.run('--background')
    profile = [{'name': 'mine', 'groups': [{'resources:FPGA': '1'}]}]
    expect(launcher.api.ask('POST', '/v2/device_profiles', profile), 201)
    again = launcher.run('--background', '--continue', '--demo')
    assert again.returncode == 0, again.stdout + again.stderr
    assert 'Stopped what an earlier run had started.' in again.stdout
    assert launcher.profiles() == ['mine']
    assert launcher.run('--background', '--fresh').returncode == 0
    assert launcher.profiles() == []


def test_another_tree_shows_other_devices(launcher: Launcher, tmp_path: Path) -> None:
    """A host without any card has the fake one alone, and the demo still passes."""
    (tmp_path / 'host' / 'sys').mkdir(parents=True)
    done = launcher.run('--demo', '--sysfs-root', 'host')
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'The demo is complete: 1 devices' in done.stdout
    assert 'Tesla' not in done.stdout


def test_cards_of_any_kind_are_seen_in_another_tree(
    launcher: Launcher, tmp_path: Path
) -> None:
    sysfs_tree.build('fpga-intel', tmp_path / 'host')
    done = launcher.run('--demo', '--sysfs-root', 'host')
    assert done.returncode == 0, done.stdout + done.stderr
    assert f'The story of {HOST}_0000:be:00.0' in done.stdout
    assert 'CUSTOM_FPGA_INTEL_PAC_ARRIA10' in done.stdout


def test_a_port_that_is_taken_is_named(launcher: Launcher) -> None:
    with socket.socket() as other:
        other.bind(('127.0.0.1', 0))
        other.listen()
        launcher.port = other.getsockname()[1]
        done = launcher.run()
    assert done.returncode == 1
    assert f'Port {launcher.port} is taken' in done.stderr
    assert 'Traceback' not in done.stderr


def test_a_service_that_cannot_start_is_shown_by_its_log(launcher: Launcher) -> None:
    broken = launcher.top / 'state' / 'cyborg-lite.sqlite'
    broken.parent.mkdir()
    broken.write_text('no database')
    done = launcher.run('--continue')
    assert done.returncode == 1
    assert 'cyborg-lite ended by itself' in done.stderr
    assert launcher.running() == []


def test_ctrl_c_leaves_nothing_running(launcher: Launcher) -> None:
    """On a terminal, where the demo is followed by the service."""
    pid, terminal = pty.fork()
    if pid == 0:
        # A shell starts what it puts in the background deaf to this signal.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(SCRIPT, [*launcher.command, '--demo'], launcher.environment)
    with os.fdopen(terminal, 'rb', buffering=0) as output:
        said = _until(output.fileno(), b'Ctrl-C ends it.')
        assert b'The demo is complete' in said
        assert {'placement', 'nova', 'cyborg-lite'} <= set(launcher.running())
        record = read_record(launcher.top / 'running.json')
        os.write(terminal, b'\x03')
        _until(output.fileno(), b'no such text')
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [group.name for group in record if group.members()] == []


def _until(terminal: int, word: bytes) -> bytes:
    """What is said up to the word, or to the end."""
    said = b''
    while word not in said:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # the other side has gone
            return said
        if not chunk:
            return said
        said += chunk
    return said
