# SPDX-License-Identifier: Apache-2.0
"""Tests of the DevStack plugin in bash, with recorded functions of DevStack."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

PLUGIN: Final = Path(__file__).parents[3] / 'devstack'

_ALL: Final = ('cyborg-lite-api', 'cyborg-lite-conductor', 'cyborg-lite-agent')
_AGENT: Final = ('cyborg-lite-agent',)
_PHASES: Final = ('install', 'post-config', 'extra', 'test-config')

# Each function of DevStack prints its name and arguments. iniset creates the file, as
# the real function does.
_DEVSTACK: Final = """\
set -eu
record() { echo "$@" >&2; }
for name in iniset_rpc_backend setup_develop pip_install \\
    configure_keystone_authtoken_middleware write_uwsgi_config create_service_user \\
    get_or_create_service get_or_create_endpoint recreate_database run_process \\
    stop_process remove_uwsgi_config define_plugin
do
    eval "$name() { record $name \\"\\$@\\"; }"
done
iniset() { record iniset "${@:2}"; }
enable_service() { :; }
sudo() { [ "$1" != install ] || mkdir -p "${@: -2}"; record "$@"; }
hostname() { echo this-host; }
die() { record die "${@:2}"; exit 1; }
get_python_exec_prefix() { echo "$DEST/bin"; }
database_connection_url() { echo "mysql://$1"; }
is_service_enabled() {
    local name
    for name in "$@"; do
        case " $ENABLED_SERVICES " in *" $name "*) return 0 ;; esac
    done
    return 1
}
DATA_DIR=$DEST/data SERVICE_PROTOCOL=http SERVICE_HOST=controller REGION_NAME=RegionOne
STACK_USER=$(id -un) ENABLE_DEBUG_LOG_LEVEL=False TEMPEST_CONFIG=$DEST/tempest.conf
NOVA_CONF=$DEST/nova.conf NOVA_CPU_CONF=$DEST/nova-cpu.conf
touch "$NOVA_CPU_CONF"
source "$PLUGIN/settings"
for phase in "$@"; do
    run() { source "$PLUGIN/plugin.sh" "$@"; }
    run stack "$phase"
done
run unstack
"""

_COMMAND: Final = '#!/bin/sh\necho "$(basename "$0") $*" >&2\necho "key of $*"\n'


def _run_phases(
    tmp_path: Path, services: Sequence[str], agent_key: str = ''
) -> subprocess.CompletedProcess[str]:
    """Run all phases; the standard error lists the calls of DevStack functions."""
    commands = tmp_path / 'bin'
    commands.mkdir()
    for name in ('cyborg-lite-manage', 'cyborg-lite-dbsync'):
        path = commands / name
        path.write_text(_COMMAND, encoding='utf-8')
        path.chmod(0o755)
    variables = {
        'PATH': '/usr/sbin:/usr/bin:/sbin:/bin',
        'DEST': str(tmp_path),
        'PLUGIN': str(PLUGIN),
        'ENABLED_SERVICES': ' '.join((*services, 'tempest')),
        'CYBORG_LITE_CONF_DIR': str(tmp_path / 'etc'),
        'CYBORG_LITE_AGENT_KEY': agent_key,
    }
    return subprocess.run(
        ['bash', '-c', _DEVSTACK, 'stack.sh', *_PHASES],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_plugin_all_services_configures_and_starts_them(tmp_path: Path) -> None:
    run = _run_phases(tmp_path, _ALL)
    assert run.returncode == 0, run.stderr
    calls = run.stderr.splitlines()
    started = [call.split()[1] for call in calls if call.startswith('run_process')]
    assert sorted(started) == sorted(_ALL)
    assert 'iniset database connection mysql://cyborg_lite' in calls
    assert 'iniset service_available cyborg True' in calls
    assert 'iniset service_user send_service_user_token True' in calls
    assert any(call.startswith('get_or_create_endpoint accelerator') for call in calls)
    key = (tmp_path / 'etc/agent.key').read_text(encoding='utf-8')
    assert key.endswith('agent key this-host\n')
    assert (tmp_path / 'etc/api.key').stat().st_mode & 0o777 == 0o600


def test_plugin_compute_node_configures_agent_only(tmp_path: Path) -> None:
    run = _run_phases(tmp_path, _AGENT, agent_key='secret-of-this-host')
    assert run.returncode == 0, run.stderr
    for text in ('database', 'recreate_database', 'write_uwsgi_config', 'endpoint'):
        assert text not in run.stderr
    assert 'placement' not in run.stderr
    key = (tmp_path / 'etc/agent.key').read_text(encoding='utf-8')
    assert key == 'secret-of-this-host\n'


def test_plugin_compute_node_without_key_fails(tmp_path: Path) -> None:
    run = _run_phases(tmp_path, _AGENT)
    assert run.returncode == 1
    assert 'die CYBORG_LITE_AGENT_KEY is not set' in run.stderr


@pytest.mark.parametrize('services', [(), ('nova',)])
def test_plugin_without_services_does_nothing(
    services: Sequence[str], tmp_path: Path
) -> None:
    run = _run_phases(tmp_path, services)
    assert run.returncode == 0, run.stderr
    assert [
        call for call in run.stderr.splitlines() if 'define_plugin' not in call
    ] == []
