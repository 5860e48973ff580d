# SPDX-License-Identifier: Apache-2.0
"""The law of the house: which room may open which, and how large its things may be."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / 'cyborg_lite'

# The bottom of the house. Everything else of it is allowed by name below.
_FLOOR: Final = {'exceptions', 'model'}

MAY_OPEN: Final[dict[str, set[str]]] = {
    'exceptions': set(),
    'version': set(),
    'runtime': set(),
    'model': {'exceptions'},
    'conf': {'version'},
    'policies': set(),
    'drivers': _FLOOR,
    'rpc': _FLOOR,
    'clients': _FLOOR,
    'db': _FLOOR,
    'api': _FLOOR | {'policies', 'rpc'},
    'conductor': _FLOOR | {'rpc', 'db', 'clients', 'version'},
    'agent': _FLOOR | {'rpc', 'drivers', 'clients', 'version'},
    # For the tests of drivers; no daemon opens it.
    'crash_kit': {'conductor', 'agent', 'drivers', 'rpc', 'db', 'clients'} | _FLOOR,
    'wsgi': {'cmd', 'runtime'},
    'cmd': {'runtime', 'conf', 'version', 'policies', 'api', 'conductor', 'agent'}
    | _FLOOR
    | {'rpc', 'db', 'drivers', 'clients'},
}

# Where a library lives; nobody else may import it.
AT_HOME: Final[dict[str, set[str]]] = {
    'sqlalchemy': {'db'},
    'alembic': {'db'},
    'oslo_db': {'db', 'conf'},
    'pecan': {'api'},
    'wsme': {'api'},
    'wsmeext': {'api'},
    'cheroot': {'api'},
    'keystonemiddleware': {'api'},
    'keystoneauth1': {'clients', 'conf'},
    'openstack': {'clients'},
    'oslo_messaging': {'rpc'},
    'oslo_policy': {'api', 'policies'},
    'oslo_privsep': {'agent', 'drivers'},
    'eventlet': {'runtime'},
}


def room_of(module: Path) -> str:
    """The second part of the name: ``cyborg_lite/db/arqs.py`` is in ``db``."""
    return module.relative_to(PACKAGE).parts[0].removesuffix('.py')


def imported(source: str) -> Iterator[str]:
    """The full names of the modules that a source imports, wherever it does so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f'{node.module}.{alias.name}' for alias in node.names)


def rooms_imported(source: str) -> set[str]:
    return {
        name.split('.')[1]
        for name in imported(source)
        if name.startswith(f'{PACKAGE.name}.')
    }


def libraries_imported(source: str) -> set[str]:
    return {name.partition('.')[0] for name in imported(source)}


def functions(source: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _modules() -> list[Path]:
    return [
        path for path in sorted(PACKAGE.rglob('*.py')) if path.parent != PACKAGE
    ] + [path for path in sorted(PACKAGE.glob('*.py')) if path.name != '__init__.py']


def _all_sources() -> list[Path]:
    folders = ('cyborg_lite', 'alembic', 'devstack', 'tests', 'benchmarks')
    return [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob('*.py'))
        if '.standalone' not in path.parts
    ]


def _modules_imported(source: str, modules: set[str]) -> set[str]:
    """The modules of ours, whether a module is imported or a name of it."""
    names = set(imported(source))
    return modules & (names | {name.rpartition('.')[0] for name in names})


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize('module', _modules(), ids=_name)
def test_a_room_opens_only_its_own_doors(module: Path) -> None:
    room = room_of(module)
    assert room in MAY_OPEN, f'{room} is a new room: write into MAY_OPEN what it opens'
    strangers = rooms_imported(module.read_text()) - MAY_OPEN[room] - {room}
    assert not strangers, (
        f'{_name(module)} reaches into {sorted(strangers)}; what rooms share belongs '
        'into rpc or model'
    )


@pytest.mark.parametrize('module', _modules(), ids=_name)
def test_a_library_stays_in_its_room(module: Path) -> None:
    room = room_of(module)
    strangers = {
        library
        for library in libraries_imported(module.read_text())
        if room not in AT_HOME.get(library, {room})
    }
    assert not strangers, f'{_name(module)} imports {sorted(strangers)}'


def test_no_module_leads_back_to_itself() -> None:
    sources = {
        '.'.join(path.relative_to(ROOT).with_suffix('').parts): path.read_text()
        for path in _modules()
    }
    imports = {
        module: _modules_imported(source, set(sources))
        for module, source in sources.items()
    }
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the modules


@pytest.mark.parametrize(
    ('source', 'rooms'),
    [
        ('import cyborg_lite.db.arqs', {'db'}),
        ('from cyborg_lite import conf as configuration', {'conf'}),
        ('from cyborg_lite.rpc import wire', {'rpc'}),
        ('def late():\n    from cyborg_lite.db import arqs', {'db'}),
        ('import cyborg_lite_other.db', set()),
    ],
)
def test_an_import_is_found_wherever_it_stands(source: str, rooms: set[str]) -> None:
    assert rooms_imported(source) == rooms


@pytest.mark.parametrize('path', _all_sources(), ids=_name)
def test_a_file_can_be_read_in_one_go(path: Path) -> None:
    source = path.read_text()
    assert source.startswith('# SPDX-License-Identifier: Apache-2.0\n')
    assert len(source.splitlines()) <= 400, f'{_name(path)}: split it by subject'
    long = [
        f'{node.name}: {node.end_lineno - node.lineno + 1}'
        for node in functions(source)
        if node.end_lineno is not None and node.end_lineno - node.lineno >= 50
    ]
    assert not long, f'{_name(path)}: extract parts of {", ".join(long)}'


@pytest.mark.parametrize('path', _modules(), ids=_name)
def test_a_module_says_what_it_is(path: Path) -> None:
    if path.name != '__init__.py':
        assert ast.get_docstring(ast.parse(path.read_text()))


def test_no_room_is_a_lumber_room() -> None:
    lumber = {'utils', 'util', 'common', 'misc', 'helpers', 'helper'}
    assert not [
        path for path in _all_sources() if lumber & {path.stem, path.parent.name}
    ]


def test_the_migrations_do_not_hide_the_library_of_their_name() -> None:
    """With an ``__init__.py`` our folder would be imported in its place."""
    assert not (ROOT / 'alembic' / '__init__.py').exists()


def test_every_entry_point_chooses_the_runtime_first() -> None:
    for module in sorted((PACKAGE / 'cmd').glob('*.py')):
        source = module.read_text()
        if not any(node.name == 'main' for node in functions(source)):
            continue
        ours = [name for name in imported(source) if name.startswith('cyborg_lite')]
        assert ours[0] == 'cyborg_lite.runtime', (
            f'{_name(module)} must import cyborg_lite.runtime before anything of ours'
        )
