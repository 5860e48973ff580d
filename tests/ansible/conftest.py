# SPDX-License-Identifier: Apache-2.0
"""The collection that all tests of this suite use, and a root for their plays."""

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.ansible.collection import install_collection

REQUIRED: Final = 'CYBORG_LITE_TEST_REQUIRE_SERVERS'


@pytest.fixture(scope='session')
def collections(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the built and installed collection."""
    directory = tmp_path_factory.mktemp('collections')
    install_collection(directory)
    return directory


@pytest.fixture
def chroot(tmp_path: Path) -> Path:
    """Directory for an overlay; without root or overlayfs the test is skipped."""
    script = 'mount -t overlay overlay -o "lowerdir=/,upperdir=$0/u,workdir=$0/w" $0/r'
    for name in 'uwr':
        (tmp_path / name).mkdir()
    command = ['unshare', '--mount', 'sh', '-c', script, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        reason = f'root and overlayfs are required: {run.stderr.strip()}'
        if os.environ.get(REQUIRED):
            pytest.fail(reason)
        pytest.skip(reason)
    return tmp_path
