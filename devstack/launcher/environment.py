# SPDX-License-Identifier: Apache-2.0
"""The virtual environment: made once, and again when what it is made from changed.

Runs under the Python of the machine, so only the standard library is at hand.
"""

import hashlib
import shutil
import subprocess
import sys
from typing import Final

from devstack.launcher import places
from devstack.launcher.failure import LaunchFailed

_MADE_FROM: Final = (
    'setup.py',
    'setup.cfg',
    'pyproject.toml',
    'requirements.txt',
    'devstack/requirements.txt',
    'devstack/constraints.txt',
)
_LOG: Final = places.LOGS / 'install.log'


def active() -> bool:
    """Whether this process runs in it."""
    return sys.prefix == str(places.VENV)


def ensure() -> None:
    """:raises LaunchFailed: it cannot be made"""
    made_from = stamp()
    if places.STAMP.is_file() and places.STAMP.read_text() == made_from:
        return
    print(f'Installing into {places.VENV}: a minute or two, once.', flush=True)
    places.LOGS.mkdir(parents=True, exist_ok=True)
    places.STAMP.unlink(missing_ok=True)
    shutil.rmtree(places.VENV, ignore_errors=True)
    _run([sys.executable, '-m', 'venv', str(places.VENV)], _advice_on_venv())
    _run(
        [
            *(str(places.PYTHON), '-m', 'pip', 'install'),
            *('--disable-pip-version-check', '--quiet'),
            *('--constraint', 'devstack/constraints.txt'),
            *('--requirement', 'devstack/requirements.txt'),
            *('--editable', '.'),
        ],
        'Check that this machine can reach a package index.',
    )
    places.STAMP.write_text(made_from)


def stamp() -> str:
    """Changes with all that the environment is made from."""
    made_from = hashlib.sha256(sys.version.encode())
    for name in _MADE_FROM:
        made_from.update((places.ROOT / name).read_bytes())
    return made_from.hexdigest()


def _run(command: list[str], advice: str) -> None:
    with _LOG.open('ab') as log:
        done = subprocess.run(
            command, cwd=places.ROOT, stdout=log, stderr=log, check=False
        )
    if done.returncode:
        tail = '\n'.join(_LOG.read_text(errors='replace').splitlines()[-15:])
        raise LaunchFailed(f'{tail}\n\nThe installation failed. {advice}')


def _advice_on_venv() -> str:
    version = f'{sys.version_info.major}.{sys.version_info.minor}'
    return (
        'Some distributions keep the module venv in a package of its own, '
        f'python{version}-venv or python3-venv.'
    )
