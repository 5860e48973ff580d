# SPDX-License-Identifier: Apache-2.0
"""Contents of the source package."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

_TREES: Final = (
    *('alembic', 'ansible', 'benchmarks', 'cyborg_lite', 'devstack', 'doc', 'etc'),
    *('cyborg_lite_dashboard', 'releasenotes', 'tests', '.ci', '.github'),
)
_IGNORE: Final = shutil.ignore_patterns('__pycache__', 'build', '.standalone')


@pytest.fixture(scope='module')
def files(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Paths in a source package that is built from a copy of the checkout."""
    sources = tmp_path_factory.mktemp('sources')
    directory = tmp_path_factory.mktemp('dist')
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, sources)
    for name in _TREES:
        shutil.copytree(ROOT / name, sources / name, ignore=_IGNORE)
    build = [sys.executable, '-m', 'build', '--sdist', '--no-isolation']
    process = subprocess.run(
        [*build, '--outdir', str(directory), str(sources)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    [archive] = directory.glob('*.tar.gz')
    with tarfile.open(archive) as package:
        return {name.partition('/')[2] for name in package.getnames()}


@pytest.mark.parametrize(
    'path',
    [
        'LICENSE',
        'CONTRIBUTING.rst',
        '.ci/run',
        '.github/workflows/ci.yml',
        '.pre-commit-config.yaml',
        'alembic/versions/0001_initial_schema.py',
        'benchmarks/fleet.py',
        'cyborg_lite_dashboard/enabled/_2420_admin_devices_panel.py',
        'devstack/run-tests.sh',
        'doc/source/index.rst',
        'doc/source/_exts/diagrams.py',
        'etc/sudoers.d/cyborg-lite',
        'etc/systemd/cyborg-lite-agent.service',
        'releasenotes/config.yaml',
        'tests/conformance/test_source_package.py',
        'tests/hosts/sysfs-fixtures.yaml',
        'tox.ini',
    ],
)
def test_source_package_contains_file(files: set[str], path: str) -> None:
    assert path in files


def test_source_package_has_no_compiled_files(files: set[str]) -> None:
    assert not [name for name in files if name.endswith('.pyc')]
