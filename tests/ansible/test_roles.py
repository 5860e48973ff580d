# SPDX-License-Identifier: Apache-2.0
"""Tests of the roles of the daemons and of the hardware, in a chroot."""

import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.ansible.collection import ROOT, Play, run_program

GROUPS: Final = ('cyborg_lite_conductor', 'cyborg_lite_api', 'cyborg_lite_agent')
# Two of the families: a task of Ansible takes a quarter of a second.
FAMILIES: Final = ('nvidia_gpu', 'sriov_nic')


@pytest.fixture(scope='module')
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with a wheel of the product."""
    directory = tmp_path_factory.mktemp('wheels')
    subprocess.run(
        [sys.executable, '-m', 'pip', 'wheel', '--quiet', '--no-deps',
         '--no-build-isolation', '--wheel-dir', str(directory), str(ROOT)],
        check=True, timeout=300,
    )  # fmt: skip
    return directory


# Any: variables of Ansible.
def _variables(wheels: Path, **variables: Any) -> Mapping[str, Any]:
    return {
        'cyborg_lite_package': 'cyborg-lite',
        # The dependencies are those of the suite, see ``_add_environment``.
        'cyborg_lite_pip_arguments': f'--no-deps --no-index --find-links {wheels}',
        'cyborg_lite_python': sys.executable,
        'cyborg_lite_host': 'compute-1',
        'cyborg_lite_transport_url': 'rabbit://joe:secret@127.0.0.1:5672/joe',
        'cyborg_lite_database_connection': 'sqlite:////var/lib/cyborg-lite/db.sqlite',
        'cyborg_lite_drivers': ['nvidia_gpu_driver'],
        'cyborg_lite_nova_service_user': {'username': 'nova', 'password': 'secret'},
        'cyborg_lite_proxy': 'haproxy',
        'cyborg_lite_manage_units': False,
        'hardware_apply': False,
        **variables,
    }


def _add_environment(play: Play, chroot: Path) -> None:
    """Create the virtual environment of the daemons with the packages of this one."""
    created = play.execute(sys.executable, '-m', 'venv', '/opt/cyborg-lite')
    assert created.returncode == 0, created.output
    [packages] = (chroot / 'upper/opt/cyborg-lite/lib').glob('python*/site-packages')
    dependencies = chroot / 'dependencies'
    dependencies.mkdir()
    for item in Path(sysconfig.get_paths()['purelib']).iterdir():
        if 'cyborg_lite' not in item.name:  # pip must install the product
            (dependencies / item.name).symlink_to(item)
    path = packages / 'dependencies.pth'
    path.write_text(f'{dependencies}\n', encoding='utf-8')


def test_site_first_run_installs_second_changes_nothing(
    collections: Path, wheels: Path, chroot: Path
) -> None:
    play = Play(collections, GROUPS, _variables(wheels), chroot)
    _add_environment(play, chroot)
    checked = play.run('site', '--check')
    assert checked.returncode == 0, checked.output
    assert '/etc/cyborg-lite/cyborg-lite.conf' not in play.list_files()
    first = play.run('site')
    assert first.returncode == 0, first.output
    files = play.list_files()
    configuration = files['/etc/cyborg-lite/cyborg-lite.conf'][1].decode()
    for line in (
        'host = compute-1',
        'port = 6667',
        'enabled_drivers = nvidia_gpu_driver',
    ):
        assert line in configuration
    for name in ('agent.key', 'api.key', 'agent-key-secret'):
        mode, content = files[f'/etc/cyborg-lite/{name}']
        assert mode & 0o777 == 0o600
        assert content
    for daemon in ('conductor', 'api', 'agent'):
        unit = files[f'/etc/systemd/system/cyborg-lite-{daemon}.service'][1]
        command = f'ExecStart=/opt/cyborg-lite/bin/cyborg-lite-{daemon}\n'
        assert command.encode() in unit
    assert '/etc/cyborg-lite/privileges.d/nvidia_gpu_driver.conf' in files
    assert '/etc/cyborg-lite/privileges.d/intel_qat_driver.conf' not in files
    assert (
        b'/opt/cyborg-lite/bin/privsep-helper' in files['/etc/sudoers.d/cyborg-lite'][1]
    )
    assert (
        b'send_service_user_token = true'
        in (files['/etc/nova/nova.conf.d/50-cyborg-lite.conf'][1])
    )
    proxy = (ROOT / 'etc/proxy/haproxy.cfg').read_bytes()
    assert files['/etc/haproxy/haproxy.cfg'][1] == proxy
    assert b'cyborg-lite:' in files['/etc/passwd'][1]
    second = play.run('site')
    assert (second.returncode, second.change_count) == (0, 0), second.output


def test_hardware_teardown_restores_recorded_state(
    collections: Path, wheels: Path, chroot: Path
) -> None:
    own = chroot / 'upper/etc/modprobe.d/cyborg-lite-nvidia_gpu.conf'
    own.parent.mkdir(parents=True)
    own.write_text('# of the operator\n', encoding='utf-8')
    own.chmod(0o600)
    variables = _variables(wheels, cyborg_lite_hardware=list(FAMILIES))
    play = Play(collections, ('cyborg_lite_agent',), variables, chroot)
    before = play.list_files()
    tags = ('--extra-vars', '{"hardware_boot_commands": ["/bin/true"]}')
    first = play.run('hardware', *tags)
    assert first.returncode == 0, first.output
    files = play.list_files()
    assert b'blacklist nouveau' in files[f'/{own.relative_to(chroot / "upper")}'][1]
    for family in FAMILIES:
        assert (
            b'iommu=pt' in files[f'/etc/default/grub.d/90-cyborg-lite-{family}.cfg'][1]
        )
        assert f'/etc/systemd/system/cyborg-lite-{family}.service' in files
    second = play.run('hardware', *tags)
    assert (second.returncode, second.change_count) == (0, 0), second.output
    teardown = play.run('hardware_teardown', *tags)
    assert teardown.returncode == 0, teardown.output
    assert play.list_files() == before
    repeated = play.run('hardware_teardown', *tags)
    assert (repeated.returncode, repeated.change_count) == (0, 0), repeated.output


@pytest.mark.parametrize(
    'path', sorted((ROOT / 'ansible/roles/hardware/vars').glob('[!m]*.yml'))
)
def test_hardware_family_has_known_lists(path: Path) -> None:
    family = yaml.safe_load(path.read_text(encoding='utf-8'))
    lists = {'modprobe', 'modules', 'kernel_arguments', 'udev_rules'}
    assert family.keys() <= lists
    assert all(isinstance(line, str) for lines in family.values() for line in lines)


def test_collection_passes_ansible_lint(collections: Path) -> None:
    options = ('--offline', '--config-file', str(ROOT / 'ansible/.ansible-lint'))
    installed = collections / 'ansible_collections/cyborg_lite/deploy'
    run_program(collections, 'ansible-lint', *options, '.', cwd=installed)
