# SPDX-License-Identifier: Apache-2.0
"""The role ``hardware`` in a chroot: by the job of the conductor, and with packages."""

import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from cyborg_lite.clients.playbooks import PlaybookOrder
from cyborg_lite.model.devices.reconfiguration import parse_hardware_sets
from tests.ansible.collection import ROOT, Play

_HOST: Final = 'compute-1'
_MODPROBE: Final = '/etc/modprobe.d/cyborg-lite-nvidia_gpu.conf'
_CHANGED: Final = '/etc/', '/var/lib/cyborg-lite/'
_TOOLS, _DRIVER, _MANAGER = 'gpu-tools', 'gpu-driver', 'gpu-manager'
_REPOSITORY: Final = '/srv/packages'
# The conductor runs orders in this way; the output is one JSON object per order.
_RUN_ORDERS: Final = """\
import json, sys, threading
from cyborg_lite.clients.playbooks import PlaybookOrder, PlaybookRunner

runner = PlaybookRunner(60.0, threading.Event())
for values in json.loads(sys.argv[1]):
    lines = []
    order = PlaybookOrder(**values)
    result = runner.run(order, lambda more: lines.extend(more) or True)
    print(json.dumps({'reason': result.reason, 'lines': lines}))
"""


def read_documented_set() -> dict[str, Any]:
    """Return the file of hardware sets that the documentation shows. Any: YAML."""
    page = (ROOT / 'doc/source/ansible.rst').read_text(encoding='utf-8')
    match = re.search(r'( +)directory: /etc.*?(?=\n\n)', page, re.DOTALL)
    assert match is not None
    result: dict[str, Any] = yaml.safe_load(match[0])
    return result


def write_directory(directory: Path, collections: Path) -> None:
    """Write the files of the directory that the documentation describes."""
    directory.mkdir()
    for name in ('ansible.cfg', 'hosts.yml'):
        (directory / name).touch()
    configuration = '[defaults]\ncollections_path = collections\n'
    (directory / 'ansible.cfg').write_text(configuration, encoding='utf-8')
    (directory / 'collections').symlink_to(collections)
    host = {
        'ansible_connection': 'local',
        'ansible_python_interpreter': sys.executable,
        'hardware_apply': False,
    }
    inventory = {'cyborg_lite_agent': {'hosts': {_HOST: host, 'compute-2': host}}}
    (directory / 'hosts.yml').write_text(yaml.safe_dump(inventory), encoding='utf-8')


class Changes:
    """Runs playbooks of the documented hardware set as the conductor does."""

    def __init__(self, play: Play, directory: Path) -> None:
        self._play = play
        data = {**read_documented_set(), 'directory': str(directory)}
        self._sets = parse_hardware_sets(data)
        (self._set,) = self._sets.sets

    def run(self, playbooks: Sequence[str], **settings: Any) -> list[str]:
        """Run playbooks of the collection; return the lines of their log."""
        self._set.check_settings(settings)
        variables = {**self._set.variables, **settings}
        orders = [
            asdict(
                PlaybookOrder(
                    self._sets.directory,
                    self._sets.inventory,
                    playbook,
                    _HOST,
                    variables,
                    self._set.timeout,
                )
            )
            for playbook in playbooks
        ]
        command = ('env', '--unset=ANSIBLE_COLLECTIONS_PATH', f'PYTHONPATH={ROOT}')
        script = (sys.executable, '-c', _RUN_ORDERS, json.dumps(orders))
        result = self._play.execute(*command, *script)
        assert result.returncode == 0, result.output
        ends = [json.loads(line) for line in result.output.splitlines()]
        assert [end['reason'] for end in ends] == [''] * len(orders), ends
        return [line for end in ends for line in end['lines']]

    def set_up(self, **settings: Any) -> list[str]:
        return self.run([self._set.setup], **settings)

    def tear_down(self, **settings: Any) -> list[str]:
        return self.run([self._set.teardown], **settings)

    def change(self, **settings: Any) -> list[str]:
        return self.run([self._set.teardown, self._set.setup], **settings)


def list_configuration(play: Play) -> dict[str, tuple[int, bytes]]:
    """Return the changed files that the role is responsible for."""
    files = play.list_files()
    return {path: files[path] for path in files if path.startswith(_CHANGED)}


def test_job_changes_setting_by_role_of_collection(
    collections: Path, chroot: Path
) -> None:
    own = Path(f'{chroot}/upper{_MODPROBE}')
    own.parent.mkdir(parents=True)
    own.write_text('# of the operator\n', encoding='utf-8')
    directory = chroot / 'ansible'
    write_directory(directory, collections)
    play = Play(collections, ('cyborg_lite_agent',), {}, chroot)
    changes = Changes(play, directory)
    before = list_configuration(play)

    changes.set_up()
    first = list_configuration(play)
    assert b'blacklist nouveau' in first[_MODPROBE][1]
    option = 'options nvidia NVreg_EnableGpuFirmware=0'
    lines = changes.change(hardware_modprobe=[option])
    assert 'Remove the record: changed' in lines
    assert 'Write the options of kernel modules: changed' in lines
    second = list_configuration(play)
    assert second[_MODPROBE][1].decode().splitlines()[1:] == [option]
    assert {path for path in second if second[path] != first[path]} == {_MODPROBE}

    changes.tear_down()
    assert list_configuration(play) == before


# --- packages -------------------------------------------------------------------------


def write_package(directory: Path, name: str) -> None:
    """Write the tree of a package with one file."""
    tree = directory / name
    (tree / 'DEBIAN').mkdir(parents=True)
    fields = {
        'Package': name,
        'Version': '550.1',
        'Architecture': 'all',
        'Maintainer': 'The cyborg_lite contributors',
        'Description': 'A package of the tests',
    }
    lines = [f'{key}: {value}\n' for key, value in fields.items()]
    (tree / 'DEBIAN/control').write_text(''.join(lines), encoding='utf-8')
    (tree / 'usr/lib/gpu').mkdir(parents=True)
    (tree / 'usr/lib/gpu' / name).touch()


_PREPARE_REPOSITORY: Final = f"""\
set -e
cd {_REPOSITORY}
for name in {_TOOLS} {_DRIVER}; do
    dpkg-deb --root-owner-group --build $name $name.deb
    {{ dpkg-deb --field $name.deb
      echo "Filename: ./$name.deb"
      echo "Size: $(stat --format %s $name.deb)"
      echo "SHA256: $(sha256sum $name.deb | cut --delimiter ' ' --fields 1)"
      echo; }} >> Packages
done
dpkg-deb --root-owner-group --build {_MANAGER} /srv/{_MANAGER}.deb
rm --force /etc/apt/sources.list.d/*
echo "deb [trusted=yes] file:{_REPOSITORY} ./" > /etc/apt/sources.list
apt-get update
apt-get install --yes {_TOOLS}
"""


def list_packages(play: Play) -> set[str]:
    """Return the installed packages of the tests."""
    result = play.execute(
        'dpkg-query', '--show', '--showformat', '${Package} ${Status}\n', 'gpu-*'
    )
    return set(re.findall(r'^(\S+) install ok installed$', result.output, re.MULTILINE))


@pytest.mark.skipif(
    not (shutil.which('dpkg-deb') and shutil.which('apt-get')), reason='no dpkg or apt'
)
def test_hardware_packages_are_installed_and_removed(
    collections: Path, chroot: Path
) -> None:
    repository = Path(f'{chroot}/upper{_REPOSITORY}')
    for name in (_TOOLS, _DRIVER, _MANAGER):
        write_package(repository, name)
    # The name of a package, with a version, and a file of the vendor.
    packages = [_TOOLS, f'{_DRIVER}=550.1', f'/srv/{_MANAGER}.deb']
    variables = {
        'cyborg_lite_hardware': ['nvidia_gpu'],
        'hardware_packages': packages,
        'hardware_apply': False,
    }
    play = Play(collections, ('cyborg_lite_agent',), variables, chroot)
    prepared = play.execute('sh', '-c', _PREPARE_REPOSITORY)
    assert prepared.returncode == 0, prepared.output
    assert list_packages(play) == {_TOOLS}

    first = play.run('hardware')
    assert first.returncode == 0, first.output
    assert list_packages(play) == {_TOOLS, _DRIVER, _MANAGER}
    second = play.run('hardware')
    assert (second.returncode, second.change_count) == (0, 0), second.output
    teardown = play.run('hardware_teardown')
    assert teardown.returncode == 0, teardown.output
    assert list_packages(play) == {_TOOLS}
    names = [path.name for path in Path(f'{chroot}/upper/usr/lib/gpu').iterdir()]
    assert names == [_TOOLS]
