# SPDX-License-Identifier: Apache-2.0
"""Version and packages of the wheel, which setup.cfg cannot describe.

The version comes from the tags of git: ``v1.2.0`` is 1.2.0, and the fifth commit after
it is 1.2.1.dev5. A source package has its version in ``PKG-INFO``.

The migrations are in ``alembic/`` at the top of the repository. The wheel contains them
as ``cyborg_lite.db.migrations``. ``cyborg_lite/db/migration.py`` supports both places.
"""

import re
import subprocess  # noqa: TID251  # this file is not part of the product
from pathlib import Path

from setuptools import find_packages, setup

# The next release, for a clone without tags and for an archive of the code.
_NEXT_VERSION = '0.2.0'
_PACKAGES = (
    *('cyborg_lite', 'cyborg_lite.*'),
    *('cyborg_lite_dashboard', 'cyborg_lite_dashboard.*'),
)
_DESCRIPTION = re.compile(r'v(\d+\.\d+\.)(\d+)-(\d+)-g[0-9a-f]+')


def read_version(root: Path) -> str:
    """Return the version of the code in a folder."""
    package = root / 'PKG-INFO'
    if package.is_file():
        match = re.search(r'^Version: (\S+)$', package.read_text(), re.MULTILINE)
        if match:
            return match[1]
    if _run_git(root, 'rev-parse', '--show-toplevel') != str(root.resolve()):
        return f'{_NEXT_VERSION}.dev0'
    tag = _run_git(root, 'describe', '--tags', '--long', '--match', 'v*.*.*')
    match = _DESCRIPTION.fullmatch(tag)
    if match is None:
        count = _run_git(root, 'rev-list', '--count', 'HEAD')
        return f'{_NEXT_VERSION}.dev{count or 0}'
    series, patch, distance = match.groups()
    if distance == '0':
        return f'{series}{patch}'
    return f'{series}{int(patch) + 1}.dev{distance}'


def _run_git(root: Path, *arguments: str) -> str:
    """Return the output of git, or nothing if it fails or is not installed."""
    command = ['git', '-C', str(root), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ''
    return result.stdout.strip() if result.returncode == 0 else ''


if __name__ == '__main__':
    setup(
        version=read_version(Path(__file__).parent),
        packages=[
            *find_packages(include=_PACKAGES),
            'cyborg_lite.db.migrations',
            'cyborg_lite.db.migrations.versions',
        ],
        package_dir={'cyborg_lite.db.migrations': 'alembic'},
    )
