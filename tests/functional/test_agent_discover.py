# SPDX-License-Identifier: Apache-2.0
"""The installed command, on every fabricated host, alone in the world."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import sysfs_tree

# Runs the command under a watch that ends it at the first thing it must not do.
_WATCHED = """
import os
import sys

from cyborg_lite.cmd import agent

FORBIDDEN = {'subprocess.Popen', 'os.system', 'os.fork', 'os.posix_spawn',
             'os.exec', 'socket.connect', 'socket.sendto'}
ELSEWHERE = ('/sys/', '/dev/', '/proc/driver', '/proc/sys')

def watch(event, arguments):
    path = arguments[0] if event in ('open', 'os.listdir', 'os.scandir') else ''
    if event in FORBIDDEN or str(path).startswith(ELSEWHERE):
        sys.__stderr__.write(f'{event} {arguments}')
        sys.__stderr__.flush()
        os._exit(99)

sys.addaudithook(watch)
sys.exit(agent.main(sys.argv[1:]))
"""


# Any: JSON.
def _discover(root: Path, *options: str, backend: str = 'threading') -> Any:
    command = Path(sys.executable).with_name('cyborg-lite-agent')
    given = ['discover', '--sysfs-root', str(root), '--format', 'json', *options]
    return _answer([str(command), *given], root, backend)


def _answer(command: list[str], root: Path, backend: str = 'threading') -> Any:
    configuration = root.with_suffix('.conf')
    # A broker that nobody could reach: it must not matter.
    url = 'rabbit://nobody:nothing@192.0.2.1:5672/'
    configuration.write_text(f'[DEFAULT]\nhost = compute-1\ntransport_url = {url}\n')
    environment = {
        **os.environ,
        'CYBORG_LITE_CONFIG': str(configuration),
        'CYBORG_LITE_CONCURRENCY': backend,
    }
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize('name', sysfs_tree.hosts())
def test_each_host_is_offered_as_it_is(name: str, tmp_path: Path) -> None:
    root = tmp_path / 'root'
    built = sysfs_tree.build(name, root)
    found = _discover(root)
    assert {each['address'] for each in found} <= set(built.functions)
    expected = {
        fields['pci']: fields
        for fields in built.expect['devices']
        if fields.get('rc') == 'PGPU' and 'CUSTOM_NVIDIA' in fields['traits'][1]
    }
    assert {each['address'] for each in found if each['offered']} == set(expected)
    for each in found:
        assert each['reason']
        fields = expected.get(each['address'])
        if fields is None:
            assert (each['provider'], each['handles']) == (None, [])
            continue
        kind, count, info = fields['handles']
        assert each['provider'] == {
            'name': f'compute-1_{each["address"]}',
            'resource_class': fields['rc'],
            'total': fields['total'],
            'reserved': 0,
            'traits': fields['traits'],
        }
        assert each['handles'] == [{'type': kind, 'info': json.loads(info)}] * count


def test_both_back_ends_of_concurrency_see_the_same(tmp_path: Path) -> None:
    root = tmp_path / 'root'
    sysfs_tree.build('t4-mdev', root)
    assert _discover(root) == _discover(root, backend='eventlet')


def test_it_starts_no_process_talks_to_no_one_and_stays_below_the_root(
    tmp_path: Path,
) -> None:
    root = tmp_path / 'root'
    sysfs_tree.build('a100-sriov-mig', root)
    given = ['discover', '--sysfs-root', str(root), '--format', 'json']
    found = _answer([sys.executable, '-c', _WATCHED, *given], root)
    assert len(found) == 34
