# SPDX-License-Identifier: Apache-2.0
"""Tests of devstack/standalone.sh in the environment of the tests."""

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from devstack.launcher import environment
from devstack.launcher.configuration import HOST, free_port
from devstack.launcher.processes import read_record
from devstack.launcher.rest import Service
from tests.hosts import sysfs_tree
from tests.servers.stack import ADMIN, NOVA, ROOT, expect

SCRIPT: Final = str(ROOT / 'devstack' / 'standalone.sh')
_LIMIT: Final = 180  # seconds


class Launcher:
    """Launcher whose files are in a directory of the test; it installs nothing."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.port, self.placement_port = free_port(), free_port()
        self.environment = {
            **os.environ,
            'CYBORG_LITE_STANDALONE': str(top),
            'PYTHON': sys.executable,
        }
        for name in ('tests', 'devstack'):  # namespace packages of other projects
            (top / name).mkdir()
            (top / name / '__init__.py').touch()
        (top / 'venv').symlink_to(sys.prefix)
        (top / 'installed').write_text(environment.input_digest())

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
        """Return the processes of the last run that still exist."""
        record = read_record(self.top / 'running.json')
        return [group.name for group in record if group.members()]

    @property
    def api(self) -> Service:
        return Service(f'http://127.0.0.1:{self.port}', ADMIN)

    def create_arq(self, group: str) -> str:
        """Create a device profile and an ARQ; return the ARQ.

        :param group: as for ``openstack accelerator device profile create --group``
        """
        properties = dict(item.rsplit('=', 1) for item in group.split(','))
        profile = [{'name': 'mine', 'groups': [properties]}]
        expect(self.api.ask('POST', '/v2/device_profiles', profile), 201)
        body = {'device_profile_name': 'mine'}
        answer = self.api.ask('POST', '/v2/accelerator_requests', body)
        return str(expect(answer, 201)['arqs'][0]['uuid'])

    def bind(self, arq: str, values: Mapping[str, str]) -> None:
        """Bind an ARQ and wait until the bind has ended."""
        patch = [
            {'op': 'add', 'path': f'/{name}', 'value': value}
            for name, value in values.items()
        ]
        service = Service(self.api.endpoint, NOVA)
        answer = service.ask('PATCH', '/v2/accelerator_requests', {arq: patch})
        expect(answer, 202)
        query = f'instance={values["instance_uuid"]}&bind_state=resolved'
        path = f'/v2/accelerator_requests?{query}'
        deadline = time.monotonic() + _LIMIT
        while service.ask('GET', path).status == 423:
            assert time.monotonic() < deadline, 'the bind does not end'
            time.sleep(0.1)

    def list_offers(self) -> set[str]:
        """Return the names of the providers that have an inventory."""
        endpoint = f'http://127.0.0.1:{self.placement_port}'
        placement = Service(endpoint, {'X-Auth-Token': 'admin'})
        path = '/resource_providers'
        providers = expect(placement.ask('GET', path), 200)['resource_providers']
        return {
            provider['name']
            for provider in providers
            if expect(
                placement.ask('GET', f'{path}/{provider["uuid"]}/inventories'), 200
            )['inventories']
        }

    def profiles(self) -> list[str]:
        answer = self.api.ask('GET', '/v2/device_profiles')
        return [profile['name'] for profile in expect(answer, 200)['device_profiles']]


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    launcher_of_test = Launcher(tmp_path)
    yield launcher_of_test
    launcher_of_test.run('--stop')
    assert launcher_of_test.running() == []


def test_demo_shows_every_step_and_leaves_nothing(launcher: Launcher) -> None:
    completed = launcher.run('--demo')
    assert completed.returncode == 0, completed.stdout + completed.stderr
    steps = re.findall(r'^   ([a-z ]+): ', completed.stdout, re.MULTILINE)
    story = [
        *('profile', 'arq', 'allocation', 'bind'),
        *('event', 'bound', 'on the host', 'deleted', 'free again'),
    ]
    cycles = completed.stdout.count('== Accelerator')
    assert [step for step in steps if step in story] == story * cycles
    assert 'Tesla T4' in completed.stdout
    # A whole card, a vGPU of the kernel and a loaded bitstream.
    assert 'CUSTOM_NVIDIA_1EB8' in completed.stdout
    assert re.search('on the host: *mdev of type nvidia-231', completed.stdout)
    assert re.search('loaded: *image d5ca2f11', completed.stdout)
    assert 'No terminal: stopping now.' in completed.stdout
    assert launcher.running() == []


def test_background_continues_or_starts_fresh_until_stop(launcher: Launcher) -> None:
    assert launcher.run('--background').returncode == 0
    assert launcher.running() == ['placement', 'nova', 'images', 'cyborg-lite']
    assert launcher.list_offers() >= {f'{HOST}_0000:3b:00.0', f'{HOST}_FakeDevice'}
    output = subprocess.run(
        ['bash', '-c', '. ./env && env'],
        cwd=launcher.top,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    values = dict(line.partition('=')[::2] for line in output.splitlines())
    assert values['ACCELERATOR_ENDPOINT'] == f'http://127.0.0.1:{launcher.port}'
    assert values['PLACEMENT_ENDPOINT'] == f'http://127.0.0.1:{launcher.placement_port}'
    assert Path(values['CYBORG_LITE_CONFIG']).is_file()
    assert values['NOVA_EVENTS'] == f'{launcher.top}/state/nova-events.jsonl'
    assert values['PATH'].startswith(f'{launcher.top}/venv/bin:')

    profile = [{'name': 'mine', 'groups': [{'resources:FPGA': '1'}]}]
    expect(launcher.api.ask('POST', '/v2/device_profiles', profile), 201)
    second_run = launcher.run('--background', '--continue', '--demo')
    assert second_run.returncode == 0, second_run.stdout + second_run.stderr
    assert 'Stopped the previous run of this checkout: ' in second_run.stdout
    events = (launcher.top / 'state' / 'nova-events.jsonl').read_text().splitlines()
    assert {json.loads(line)['status'] for line in events} == {'completed'}
    assert launcher.profiles() == ['mine']

    sysfs_tree.build('fpga-intel', launcher.top / 'host')
    fresh = launcher.run('--background', '--fresh', '--sysfs-root', 'host')
    assert fresh.returncode == 0, fresh.stdout + fresh.stderr
    assert launcher.profiles() == []
    devices = expect(launcher.api.ask('GET', '/v2/devices'), 200)['devices']
    assert 'Tesla' not in str(devices)
    assert f'{HOST}_0000:be:00.0' in launcher.list_offers()
    stopped = launcher.run('--stop')
    assert (stopped.returncode, stopped.stdout) == (0, 'Stopped.\n')
    assert launcher.run('--stop').stdout == 'Nothing was running.\n'


def test_sample_host_reboot_rebuilds_vgpu(launcher: Launcher) -> None:
    started = launcher.run('--background', '--sample-host', 'l40s-vendor-vfio')
    assert started.returncode == 0, started.stdout + started.stderr
    # The values are those of the printed commands.
    values = dict(re.findall(r'"/(\w+)", "value": "([^"]+)"', started.stdout))
    (group,) = re.findall(r'--group (resources:VGPU=1,trait:\S+)', started.stdout)
    arq = launcher.create_arq(group)
    launcher.bind(arq, values)
    rebooted = launcher.run('--reboot-host')
    assert rebooted.returncode == 0, rebooted.stdout + rebooted.stderr
    lines = [line for line in rebooted.stdout.splitlines() if arq in line]
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert 'is Bound; the host shows: ' in lines[0]
    assert 'vGPU of type 1155' in lines[0]


def test_reboot_without_sample_host_is_refused(launcher: Launcher) -> None:
    completed = launcher.run('--reboot-host')
    assert completed.returncode == 1
    assert 'No service with a sample host is running.' in completed.stderr


def test_sample_hosts_are_listed(launcher: Launcher) -> None:
    completed = launcher.run('--sample-hosts')
    assert completed.returncode == 0
    assert re.search(r'^l40s-vendor-vfio\n +2x L40S', completed.stdout, re.MULTILINE)


def test_port_in_use_is_named(launcher: Launcher) -> None:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        listener.listen()
        launcher.port = listener.getsockname()[1]
        completed = launcher.run()
    assert completed.returncode == 1
    assert f'Port {launcher.port} is in use' in completed.stderr
    assert 'Traceback' not in completed.stderr


def test_failed_start_shows_log_of_service(launcher: Launcher) -> None:
    broken = launcher.top / 'state' / 'cyborg-lite.sqlite'
    broken.parent.mkdir()
    broken.write_text('no database')
    completed = launcher.run('--continue')
    assert completed.returncode == 1
    assert 'cyborg-lite exited unexpectedly' in completed.stderr
    assert launcher.running() == []


def test_ctrl_c_leaves_no_process(launcher: Launcher) -> None:
    """The demo on a terminal is followed by the running service."""
    pid, terminal = pty.fork()
    if pid == 0:
        # A shell starts background processes with SIGINT ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.execve(SCRIPT, [*launcher.command, '--demo'], launcher.environment)
    with os.fdopen(terminal, 'rb', buffering=0) as output:
        received = _until(output.fileno(), b'Press Ctrl-C to stop.')
        assert b'The demo is complete' in received
        assert {'placement', 'nova', 'cyborg-lite'} <= set(launcher.running())
        record = read_record(launcher.top / 'running.json')
        os.write(terminal, b'\x03')
        _until(output.fileno(), b'no such text')
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [group.name for group in record if group.members()] == []


def _until(terminal: int, word: bytes) -> bytes:
    """Return the output up to the word, or to the end.

    The test fails if neither comes within the limit.
    """
    received = b''
    deadline = time.monotonic() + _LIMIT
    while word not in received:
        readable, _, _ = select.select(
            [terminal], [], [], max(0, deadline - time.monotonic())
        )
        if not readable:
            text = received.decode(errors='replace')
            pytest.fail(f'no {word.decode()!r} within {_LIMIT} s: {text}')
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # the other side was closed
            return received
        if not chunk:
            return received
        received += chunk
    return received
