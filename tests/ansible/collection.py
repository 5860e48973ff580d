# SPDX-License-Identifier: Apache-2.0
"""The installed collection, and plays in a chroot over this machine.

The chroot is an overlay: a play sees the files of this machine, and its changes stay in
a directory of the test. It needs root and the file system ``overlay``.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = Path(sys.executable).parent

UUID_CLOCK: Final = 'var/lib/libuuid/clock.txt'

_TIMEOUT: Final = 300  # seconds of a play
_CHROOT: Final = """\
set -e
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
directory=$1
shift
exec chroot "$directory/root" "$@"
"""


@dataclass(frozen=True)
class PlayResult:
    """The numbers of a play, and its output."""

    returncode: int
    output: str

    @property
    def change_count(self) -> int:
        """Return the number of changed tasks."""
        match = re.search(r'changed=(\d+)', self.output)
        assert match is not None, self.output
        return int(match[1])


def run_program(
    collections: Path, name: str, *arguments: str, cwd: Path | None = None
) -> str:
    """Run a program of Ansible and return its output.

    :param collections: directory of the collections, and of the files of Ansible
    """
    run = subprocess.run(
        [str(PROGRAMS / name), *arguments],
        cwd=cwd,
        env=_list_variables(collections),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def build_collection(directory: Path) -> Path:
    """Build the collection in a directory and return its archive."""
    directory.mkdir(exist_ok=True)
    output = ('--output-path', str(directory))
    collection = ('ansible-galaxy', 'collection')
    run_program(directory, *collection, 'build', str(ROOT / 'ansible'), *output)
    [archive] = directory.glob('*.tar.gz')
    return archive


def install_collection(directory: Path) -> None:
    """Build the collection and install it into a directory of collections."""
    archive = build_collection(directory)
    path = ('--collections-path', str(directory))
    install = ('ansible-galaxy', 'collection', 'install')
    run_program(directory, *install, str(archive), '--offline', *path)


def _list_variables(collections: Path) -> dict[str, str]:
    return {
        **os.environ,
        'PATH': f'{PROGRAMS}:{os.environ["PATH"]}',
        'ANSIBLE_COLLECTIONS_PATH': str(collections),
        'ANSIBLE_HOME': str(collections / 'home'),
        'ANSIBLE_NOCOLOR': '1',
        'ANSIBLE_LOCALHOST_WARNING': '0',
        'PYTHONPATH': '',
        'PYTHONDONTWRITEBYTECODE': '1',  # a test compares the files before and after
    }


class Play:
    """Runs playbooks of the collection on this machine or in a chroot over it."""

    def __init__(
        self,
        collections: Path,
        groups: Sequence[str],
        variables: Mapping[str, Any],  # Any: variables of Ansible
        chroot: Path | None = None,
    ) -> None:
        """Write the inventory.

        :param chroot: directory of the overlay; None: this machine
        """
        self._collections = collections
        self._chroot = chroot
        host = {
            'ansible_connection': 'local',
            'ansible_python_interpreter': sys.executable,
            **variables,
        }
        self._inventory = collections / f'inventory-{"-".join(groups)}.json'
        self._inventory.write_text(
            json.dumps({group: {'hosts': {'this-host': host}} for group in groups}),
            encoding='utf-8',
        )

    def run(self, playbook: str, *options: str) -> PlayResult:
        """Run a playbook of the collection.

        :param options: options of ansible-playbook, for instance ``--check``
        """
        return self.execute(
            str(PROGRAMS / 'ansible-playbook'),
            '--inventory',
            str(self._inventory),
            *options,
            f'cyborg_lite.deploy.{playbook}',
        )

    def execute(self, *command: str) -> PlayResult:
        """Run a command on this machine or in the chroot."""
        if self._chroot is not None:
            for name in ('upper', 'work', 'root'):
                (self._chroot / name).mkdir(exist_ok=True)
            script = ['sh', '-c', _CHROOT, 'sh', str(self._chroot)]
            command = ('unshare', '--mount', '--pid', '--fork', *script, *command)
        run = subprocess.run(
            command,
            env=_list_variables(self._collections),
            cwd='/',
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
        return PlayResult(run.returncode, run.stdout + run.stderr)

    def list_files(self) -> dict[str, tuple[int, bytes]]:
        """Return mode and content of the files in the chroot that plays changed.

        The clock of libuuid is left out: each program that makes a uuid writes it.
        """
        assert self._chroot is not None
        upper = self._chroot / 'upper'
        return {
            f'/{path.relative_to(upper)}': (path.stat().st_mode, path.read_bytes())
            for path in upper.rglob('*')
            if path.is_file() and not path.is_symlink() and path != upper / UUID_CLOCK
        }
