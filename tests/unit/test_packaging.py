# SPDX-License-Identifier: Apache-2.0
"""What is shipped: the wheel has all that a checkout has, and works without it."""

import configparser
import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
MIGRATIONS: Final = 'cyborg_lite/db/migrations'

# What a build reads. Not the whole checkout: a stale build/ may be lying about there.
_SOURCES: Final = ('setup.py', 'setup.cfg', 'pyproject.toml', 'requirements.txt')
_TREES: Final = ('cyborg_lite', 'alembic')

_UPGRADE: Final = """
import sys
from pathlib import Path
from cyborg_lite.db import migration
print(migration.script_location().resolve())
migration.upgrade('sqlite:///' + sys.argv[1])
assert migration.current('sqlite:///' + sys.argv[1]) == migration.head()
"""


@pytest.fixture(scope='module')
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of what the product is built from."""
    copied = tmp_path_factory.mktemp('sources')
    for name in _SOURCES:
        shutil.copy(ROOT / name, copied)
    for readme in ROOT.glob('README*'):
        shutil.copy(readme, copied)
    for name in _TREES:
        ignored = shutil.ignore_patterns('__pycache__')
        shutil.copytree(ROOT / name, copied / name, ignore=ignored)
    return copied


@pytest.fixture(scope='module')
def wheel(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, so that this is whole as well."""
    built = tmp_path_factory.mktemp('dist')
    _run(
        ['-m', 'build', '--no-isolation', '--outdir', str(built), str(sources)],
        cwd=sources,
    )
    [found] = built.glob('*.whl')
    return found


def _run(
    arguments: list[str], cwd: Path, python: str = sys.executable, path: str = ''
) -> str:
    """What a Python process prints; it finds modules in ``path`` before all others."""
    ended = subprocess.run(
        [python, *arguments],
        cwd=cwd,
        env={**os.environ, 'PYTHONPATH': path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _files(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as opened:
        return set(opened.namelist())


def test_the_wheel_has_every_module_of_the_package(wheel: Path) -> None:
    ours = {
        str(module.relative_to(ROOT)) for module in (ROOT / 'cyborg_lite').rglob('*.py')
    }
    shipped = {name for name in _files(wheel) if name.endswith('.py')}
    assert ours <= shipped
    assert {name for name in shipped - ours if not name.startswith(MIGRATIONS)} == set()


def test_the_wheel_tells_that_it_is_typed(wheel: Path) -> None:
    assert 'cyborg_lite/py.typed' in _files(wheel)


def test_the_wheel_has_every_migration_and_no_other(wheel: Path) -> None:
    ours = {
        f'{MIGRATIONS}/{script.relative_to(ROOT / "alembic")}'
        for pattern in ('*.py', '*.mako')
        for script in (ROOT / 'alembic').rglob(pattern)
    }
    assert {name for name in _files(wheel) if name.startswith(MIGRATIONS)} == ours
    assert f'{MIGRATIONS}/env.py' in ours
    assert f'{MIGRATIONS}/script.py.mako' in ours


def test_the_wheel_has_no_tests_and_no_folder_of_the_name_of_the_library(
    wheel: Path,
) -> None:
    tops = {name.split('/')[0] for name in _files(wheel)}
    assert {top for top in tops if not top.endswith('.dist-info')} == {'cyborg_lite'}


def test_an_installed_wheel_upgrades_a_database(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / 'site'
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(site)
    where = _run(['-c', _UPGRADE, str(tmp_path / 'file')], cwd=tmp_path, path=str(site))
    assert Path(where.strip()) == site / MIGRATIONS


def test_a_checkout_upgrades_a_database_from_anywhere(
    sources: Path, tmp_path: Path
) -> None:
    where = _run(
        ['-c', _UPGRADE, str(tmp_path / 'file')], cwd=tmp_path, path=str(sources)
    )
    assert Path(where.strip()) == sources / 'alembic'


def test_an_editable_install_upgrades_a_database(sources: Path, tmp_path: Path) -> None:
    """It does not see the mapping of the folder into the package."""
    home = tmp_path / 'venv'
    venv.create(home, with_pip=False)
    python = str(home / 'bin' / 'python')
    # The libraries are those of this environment; the product is not.
    names = {'base': str(home), 'platbase': str(home)}
    site = Path(sysconfig.get_path('purelib', 'venv', names))
    (site / 'libraries.pth').write_text(sysconfig.get_path('purelib') + '\n')
    install = ['-m', 'pip', '--python', python, 'install', '-q', '--no-deps']
    _run([*install, '--no-build-isolation', '-e', str(sources)], cwd=tmp_path)
    where = _run(['-c', _UPGRADE, str(tmp_path / 'file')], cwd=tmp_path, python=python)
    assert Path(where.strip()) == sources / 'alembic'


def test_the_folder_of_migrations_is_no_package() -> None:
    """With an ``__init__.py`` it would hide the library from the top of a checkout."""
    assert not (ROOT / 'alembic' / '__init__.py').exists()
    assert not (ROOT / 'alembic' / 'versions' / '__init__.py').exists()


def test_the_library_wins_at_the_top_of_a_checkout() -> None:
    code = 'import alembic.command; print(alembic.command.__file__)'
    found = _run(['-c', code], cwd=ROOT, path=str(ROOT))
    assert ROOT / 'alembic' not in Path(found.strip()).parents


def _entry_points() -> list[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    section = parser['options.entry_points']
    return [
        line.partition('=')[2].strip()
        for group in section.values()
        for line in group.strip().splitlines()
    ]


@pytest.mark.parametrize('target', _entry_points())
def test_every_entry_point_leads_somewhere(target: str) -> None:
    module, _, name = target.partition(':')
    assert callable(getattr(importlib.import_module(module), name))
