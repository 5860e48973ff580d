# SPDX-License-Identifier: Apache-2.0
"""The unit of the agent under systemd, and its rule of sudo."""

import json
from typing import Final

import pytest

from tests.kernel.host import PROGRAMS, UNIT, Host
from tests.servers.stack import ADMIN

_READ_DEVICES: Final = """\
import json, sys, urllib.request
url, headers = json.load(sys.stdin)
request = urllib.request.Request(url, headers=headers)
print(urllib.request.urlopen(request).status)
"""
_SOCKET: Final = '--privsep_sock_path'
_CONTEXT: Final = '--privsep_context cyborg_lite.drivers.host.privileged.CONTEXT'


def test_unit_and_rule_are_valid(host: Host) -> None:
    assert host.machine.run(f'systemd-analyze verify {UNIT}.service') == ''
    assert 'parsed OK' in host.machine.run('visudo --check')


@pytest.mark.parametrize(
    ('command', 'error'),
    [
        ('touch /etc/cyborg-lite/x', 'Read-only file system'),
        ('touch /usr/x', 'Read-only file system'),
        ('cat /root/.profile', 'No such file or directory'),
        ('mkdir /sys/fs/cgroup/x', 'Read-only file system'),
        ('mknod /tmp/x b 1 1', 'Operation not permitted'),
        ('date --set 2000-01-01', 'Operation not permitted'),
    ],
)
def test_unit_restricts_root(host: Host, command: str, error: str) -> None:
    result = host.machine.execute(host.enter_unit(command))
    assert result.status
    assert error in result.output


def test_state_and_runtime_directories_are_writable(host: Host) -> None:
    for directory in ('/var/lib/cyborg-lite', '/run/cyborg-lite', '/tmp'):
        host.machine.run(host.enter_unit(f'touch {directory}/x && rm {directory}/x'))


@pytest.mark.parametrize(
    'arguments',
    [
        f'--privsep_context os.system {_SOCKET} /tmp/tmpabcdefgh/privsep.sock',
        f'{_CONTEXT} {_SOCKET} /tmp/tmp/privsep.sock',
        f'{_CONTEXT} {_SOCKET} /etc/privsep.sock',
        f'{_CONTEXT} {_SOCKET} /tmp/tmp --key x/privsep.sock',
        f'--debug {_CONTEXT} {_SOCKET} /tmp/tmpabcdefgh/privsep.sock',
    ],
)
def test_sudo_refuses_other_arguments(host: Host, arguments: str) -> None:
    helper = f'{PROGRAMS}/privsep-helper {arguments}'
    result = host.machine.execute(
        f'sudo -u cyborg-lite sudo --non-interactive {helper}'
    )
    assert result.status == 1
    assert 'a password is required' in result.output


def test_reload_and_stop_of_the_unit(host: Host) -> None:
    host.machine.run(f'systemctl reload {UNIT}')
    line = 'Reloaded the configuration; 0 options changed.'
    host.machine.until(lambda: line in host.journal(), line)
    host.machine.run(f'systemctl stop {UNIT}')
    state = host.machine.run(f'systemctl show {UNIT} -P Result -P ExecMainStatus')
    assert state.split() == ['success', '0']
    host.start_agent()


def test_api_and_conductor_serve_under_their_units(host: Host) -> None:
    units = 'cyborg-lite-api cyborg-lite-conductor'
    host.machine.run(f'{PROGRAMS}/cyborg-lite-manage install-units api conductor')
    host.machine.run('systemctl daemon-reload')
    for unit in units.split():
        assert host.machine.run(f'systemd-analyze verify {unit}.service') == ''
    with host.be_controller():
        # Alone first: no other daemon creates the directory of the locks.
        for unit in units.split():
            host.machine.run(f'systemctl start {unit}')
        request = json.dumps((f'http://127.0.0.1:{host.cloud.port}/v2/devices', ADMIN))
        call = f"{PROGRAMS}/python -c '{_READ_DEVICES}' <<< '{request}'"
        assert host.machine.run(call) == '200'
        assert (
            host.machine.run(f'systemctl is-active {units}').split() == ['active'] * 2
        )
