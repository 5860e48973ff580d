# SPDX-License-Identifier: Apache-2.0
"""The previous release, in a folder: its daemons run beside those of this checkout.

The code comes from the history of the repository, so no network is needed.
"""

import configparser
import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Final

import pytest

from tests.support.sources import ROOT

COMMIT: Final = 'a9dce6d8f43d77525079f5403d17c546299d0012'
"""The commit before rolling upgrades were tested; set it to the tag of a release."""

VERSION: Final = '0.1.0'
_NAME: Final = 'cyborg-lite'


def install(folder: Path) -> Path:
    """Write the code and the metadata of the previous release.

    The test is skipped if the checkout lacks its history, as a source package does.

    :returns: the entry for the Python path
    """
    archive = _read_archive()
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter='data')
    config = configparser.ConfigParser()
    config.read(folder / 'setup.cfg')
    info = folder / f'{_NAME.replace("-", "_")}-{VERSION}.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text(
        f'Metadata-Version: 2.1\nName: {_NAME}\nVersion: {VERSION}\n'
    )
    entry_points = ''.join(
        f'[{group}]\n{text.strip()}\n\n'
        for group, text in config['options.entry_points'].items()
    )
    (info / 'entry_points.txt').write_text(entry_points)
    return folder


def environment(*paths: Path) -> dict[str, str]:
    """Return the environment of a daemon of the previous release.

    :param paths: entries of the Python path
    """
    # Without the second variable, Python would import from the current folder first.
    return {'PYTHONPATH': os.pathsep.join(map(str, paths)), 'PYTHONSAFEPATH': '1'}


def _read_archive() -> bytes:
    command = ['git', '-C', str(ROOT), 'archive', COMMIT]
    try:
        result = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip('git is not installed')
    if result.returncode != 0:
        reason = result.stderr.decode(errors='replace').strip()
        pytest.skip(f'the checkout lacks commit {COMMIT} in its history: {reason}')
    return result.stdout
