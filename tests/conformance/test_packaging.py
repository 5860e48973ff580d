# SPDX-License-Identifier: Apache-2.0
"""Contents of the wheel, and the upgrade of a database from each kind of install."""

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

from cyborg_lite.version import VERSION

ROOT: Final = Path(__file__).parents[2]
MIGRATIONS: Final = 'cyborg_lite/db/migrations'

# Files that a build reads. A stale build/ of the checkout is not copied.
_SOURCES: Final = (
    *('LICENSE', 'setup.py', 'setup.cfg', 'pyproject.toml', 'requirements.txt'),
)
_TREES: Final = ('cyborg_lite', 'cyborg_lite_dashboard', 'alembic', 'etc')
_PACKAGES: Final = {'cyborg_lite', 'cyborg_lite_dashboard'}

_UPGRADE: Final = """
import sys
from pathlib import Path
from cyborg_lite.db.core import migration
print(migration.script_location().resolve())
url = 'sqlite:///' + sys.argv[1]
migration.upgrade(url)
assert migration.current_revision(url) == migration.head_revision()
"""


@pytest.fixture(scope='module')
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clean copy of the files that the product is built from."""
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
    """Wheel that is built from the source distribution, which is tested by it."""
    directory = tmp_path_factory.mktemp('dist')
    _run(
        ['-m', 'build', '--no-isolation', '--outdir', str(directory), str(sources)],
        cwd=sources,
    )
    [wheel] = directory.glob('*.whl')
    return wheel


def _run(
    arguments: list[str], cwd: Path, python: str = sys.executable, path: str = ''
) -> str:
    """Run a Python process and return its output.

    :param path: directory that is searched first for modules
    """
    process = subprocess.run(
        [python, *arguments],
        cwd=cwd,
        env={**os.environ, 'PYTHONPATH': path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def _list_files(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as file:
        return set(file.namelist())


def test_wheel_has_all_modules_of_package(wheel: Path) -> None:
    modules = {
        str(module.relative_to(ROOT))
        for package in _PACKAGES
        for module in (ROOT / package).rglob('*.py')
    }
    shipped = {name for name in _list_files(wheel) if name.endswith('.py')}
    assert modules <= shipped
    assert {
        name for name in shipped - modules if not name.startswith(MIGRATIONS)
    } == set()


def test_wheel_has_version_of_package(wheel: Path) -> None:
    assert wheel.name.split('-')[1] == VERSION


def test_wheel_has_typing_marker(wheel: Path) -> None:
    assert 'cyborg_lite/py.typed' in _list_files(wheel)


def test_wheel_has_samples_of_api_document(wheel: Path) -> None:
    folder = 'cyborg_lite/api/openapi/samples'
    samples = {str(file.relative_to(ROOT)) for file in (ROOT / folder).glob('*.json')}
    assert samples
    assert samples <= _list_files(wheel)


def test_wheel_has_exactly_the_migrations_of_checkout(wheel: Path) -> None:
    scripts = {
        f'{MIGRATIONS}/{script.relative_to(ROOT / "alembic")}'
        for pattern in ('*.py', '*.mako')
        for script in (ROOT / 'alembic').rglob(pattern)
    }
    assert {
        name for name in _list_files(wheel) if name.startswith(MIGRATIONS)
    } == scripts
    assert f'{MIGRATIONS}/env.py' in scripts
    assert f'{MIGRATIONS}/script.py.mako' in scripts


def test_wheel_has_two_top_level_packages(wheel: Path) -> None:
    tops = {name.split('/')[0] for name in _list_files(wheel)}
    metadata = ('.dist-info', '.data')
    assert {top for top in tops if not top.endswith(metadata)} == _PACKAGES


def test_wheel_has_templates_and_policies_of_dashboard(wheel: Path) -> None:
    folder = ROOT / 'cyborg_lite_dashboard'
    files = {
        str(path.relative_to(ROOT))
        for pattern in ('*.html', '*.yaml')
        for path in folder.rglob(pattern)
    }
    assert len(files) > 1
    assert files <= _list_files(wheel)


def test_wheel_has_man_pages_tables_and_completion(wheel: Path) -> None:
    files = _list_files(wheel)
    assert 'cyborg_lite/api/schemas/bodies.yaml' in files
    assert 'cyborg_lite/drivers/nvidia/cards.toml' in files
    assert 'cyborg_lite/drivers/pci/drivers.toml' in files
    assert 'cyborg_lite/conf/completion.bash' in files
    pages = {name.rpartition('/')[2] for name in files if '/share/man/man8/' in name}
    assert pages == {page.name for page in (ROOT / 'etc' / 'man').iterdir()}


def test_wheel_has_units_privileges_and_samples(wheel: Path) -> None:
    directory = '.data/data/share/cyborg-lite/'
    files = {
        name.partition(directory)[2] for name in _list_files(wheel) if directory in name
    }
    etc = ROOT / 'etc'
    expected = {
        str(path.relative_to(etc))
        for folder in (
            'privileges.d',
            'sudoers.d',
            'sysusers.d',
            'tmpfiles.d',
            'systemd',
            'proxy',
            'prometheus',
            'grafana',
        )
        for path in (etc / folder).iterdir()
    }
    # The input of oslo-config-validator is that of the generator.
    samples = {'cyborg-lite.conf.sample', 'policy.yaml.sample', 'config-generator.conf'}
    assert files == expected | samples | {'uwsgi-cyborg-lite-api.ini'}


def test_wheel_has_licence(wheel: Path) -> None:
    assert any(name.endswith('/licenses/LICENSE') for name in _list_files(wheel))


def test_upgrade_from_installed_wheel_succeeds(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / 'site'
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    location = _run(
        ['-c', _UPGRADE, str(tmp_path / 'file')], cwd=tmp_path, path=str(site)
    )
    assert Path(location.strip()) == site / MIGRATIONS


def test_upgrade_from_checkout_in_other_directory_succeeds(
    sources: Path, tmp_path: Path
) -> None:
    location = _run(
        ['-c', _UPGRADE, str(tmp_path / 'file')], cwd=tmp_path, path=str(sources)
    )
    assert Path(location.strip()) == sources / 'alembic'


def test_upgrade_from_editable_install_succeeds(sources: Path, tmp_path: Path) -> None:
    """An editable install does not map ``alembic/`` into the package."""
    home = tmp_path / 'venv'
    venv.create(home, with_pip=False)
    python = str(home / 'bin' / 'python')
    # The new environment uses the libraries of this one, but not its cyborg_lite.
    names = {'base': str(home), 'platbase': str(home)}
    site = Path(sysconfig.get_path('purelib', 'venv', names))
    (site / 'libraries.pth').write_text(sysconfig.get_path('purelib') + '\n')
    install = ['-m', 'pip', '--python', python, 'install', '-q', '--no-deps']
    _run([*install, '--no-build-isolation', '-e', str(sources)], cwd=tmp_path)
    location = _run(
        ['-c', _UPGRADE, str(tmp_path / 'file')], cwd=tmp_path, python=python
    )
    assert Path(location.strip()) == sources / 'alembic'


def test_import_alembic_in_checkout_imports_library() -> None:
    code = 'import alembic.command; print(alembic.command.__file__)'
    output = _run(['-c', code], cwd=ROOT, path=str(ROOT))
    assert ROOT / 'alembic' not in Path(output.strip()).parents
