# SPDX-License-Identifier: Apache-2.0
"""The virtual environment. It is created again when one of its input files changes.

This module runs with the Python of the machine, so it uses only the standard library.
"""

import hashlib
import shutil
import subprocess
import sys
from typing import Final

from devstack.launcher import paths
from devstack.launcher.failure import LaunchFailed

_INPUT_FILES: Final = (
    'setup.py',
    'setup.cfg',
    'requirements.txt',
    'pyproject.toml',
    'devstack/requirements.txt',
    'devstack/constraints.txt',
)
_LOG: Final = paths.LOGS / 'install.log'


def is_active() -> bool:
    """Check whether this process runs in the environment."""
    return sys.prefix == str(paths.VENV)


def ensure() -> None:
    """Create the environment unless it is up to date.

    :raises LaunchFailed: if the installation fails
    """
    digest = input_digest()
    if paths.STAMP.is_file() and paths.STAMP.read_text() == digest:
        return
    print(f'Creating {paths.VENV} (one to two minutes, once).', flush=True)
    paths.LOGS.mkdir(parents=True, exist_ok=True)
    paths.STAMP.unlink(missing_ok=True)
    shutil.rmtree(paths.VENV, ignore_errors=True)
    _run([sys.executable, '-m', 'venv', str(paths.VENV)], _advice_on_venv())
    print('Installing the packages.', flush=True)
    _run(
        [
            *(str(paths.PYTHON), '-m', 'pip', 'install'),
            *('--disable-pip-version-check', '--quiet'),
            *('--constraint', 'devstack/constraints.txt'),
            *('--requirement', 'devstack/requirements.txt'),
            *('--editable', '.'),
        ],
        'Check that this machine can reach a package index.',
    )
    paths.STAMP.write_text(digest)
    print('The packages are installed.', flush=True)


def input_digest() -> str:
    """Return a digest of the Python version and all input files."""
    digest = hashlib.sha256(sys.version.encode())
    for name in _INPUT_FILES:
        digest.update((paths.ROOT / name).read_bytes())
    return digest.hexdigest()


def _run(command: list[str], advice: str) -> None:
    with _LOG.open('ab') as log:
        process = subprocess.run(
            command, cwd=paths.ROOT, stdout=log, stderr=log, check=False
        )
    if process.returncode:
        tail = '\n'.join(_LOG.read_text(errors='replace').splitlines()[-15:])
        raise LaunchFailed(f'{tail}\n\nThe installation failed. {advice}')


def _advice_on_venv() -> str:
    version = f'{sys.version_info.major}.{sys.version_info.minor}'
    return (
        f'Install the package python{version}-venv or python3-venv, if the '
        'distribution has one.'
    )
