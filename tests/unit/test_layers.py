# SPDX-License-Identifier: Apache-2.0
"""Rules of the code structure: who may import whom, and how large a unit may be.

Each test lists the offenders with file and line, and its message names the remedy.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from typing import Final

import pytest

from tests.support.sources import (
    PACKAGE,
    Source,
    list_functions,
    list_imports,
    read_all_sources,
    read_sources,
)

MAX_FUNCTION_LINES: Final = 50
VAGUE_NAMES: Final = frozenset({'utils', 'util', 'common', 'misc', 'helpers', 'helper'})

RANDOM_CALLS: Final = frozenset({'uuid1', 'uuid4', 'token_hex', 'random', 'now'})

# Every package may import these two.
_BASE: Final = {'errors', 'model'}

# The packages that a package of cyborg_lite may import.
MAY_IMPORT: Final[dict[str, set[str]]] = {
    'errors': set(),
    'version': set(),
    'runtime': set(),
    'codec': {'errors'},
    'model': {'errors'},
    'conf': {'version', 'errors'},
    'policies': set(),
    'drivers': _BASE,
    'rpc': _BASE | {'codec'},
    'clients': _BASE,
    'db': _BASE | {'codec'},
    # Metrics of all daemons.
    'monitoring': _BASE,
    'api': _BASE | {'policies', 'rpc', 'monitoring'},
    'conductor': _BASE | {'codec', 'rpc', 'db', 'clients', 'version', 'monitoring'},
    'agent': _BASE | {'codec', 'rpc', 'drivers', 'clients', 'version'},
    # Test kits for driver authors. Nothing in the package imports them.
    'testing': _BASE | {'conductor', 'agent', 'drivers', 'rpc', 'db', 'clients'},
    # Import from OpenStack Cyborg. Nothing in the package imports it.
    'cyborg_import': _BASE | {'conf', 'cmd', 'db', 'clients'},
    # Client of the REST API for programs of users, without any library.
    'api_client': set(),
    # Runs in the openstack client, on machines without the service.
    'cli': {'api_client'},
    # Pictures of objects of the model.
    'rendering': _BASE,
    'wsgi': {'cmd', 'runtime'},
    'cmd': {'runtime', 'conf', 'version', 'policies', 'api', 'conductor', 'agent'}
    | _BASE
    | {'rpc', 'db', 'drivers', 'clients', 'rendering'},
}

# The parts of cyborg_lite that the panels of Horizon may import.
DASHBOARD_MAY_IMPORT: Final = {'api_client', 'model', 'rendering'}

# The only packages that may import a library.
LIBRARY_USERS: Final[dict[str, set[str]]] = {
    'sqlalchemy': {'db', 'cyborg_import'},
    'alembic': {'db'},
    'oslo_db': {'db', 'conf', 'cyborg_import'},
    'pecan': {'api'},
    'wsme': {'api'},
    'wsmeext': {'api'},
    'waitress': {'api'},
    'keystonemiddleware': {'api'},
    'keystoneauth1': {'clients', 'conf', 'cyborg_import'},
    'openstack': {'clients'},
    'oslo_limit': {'clients'},
    'osc_lib': {'cli'},
    'cliff': {'cli'},
    'oslo_messaging': {'rpc'},
    'msgspec': {'codec'},
    'oslo_policy': {'api', 'policies'},
    'oslo_privsep': {'agent', 'drivers'},
    'eventlet': {'runtime'},
    'grandalf': {'rendering'},
    # Loads the dashboard of Horizon.
    'cyborg_lite_dashboard': set(),
}

# Rooms below drivers/ that all other rooms there may import. The other rooms are those
# of vendors and kinds of devices.
SHARED_ROOMS: Final = frozenset({'host', 'pci'})

# Rooms below db/, each of which may import the rooms before it.
DB_ROOMS: Final = [
    *('core', 'jobs', 'profiles', 'inventory', 'devices', 'bitstreams', 'ownership'),
    *('arqs', 'providers', 'capacity', 'hosts'),
]


def package_of(source: Source) -> str:
    """Return the part after ``cyborg_lite``: ``db`` for a module of ``db``."""
    return source.path.relative_to(PACKAGE).parts[0].removesuffix('.py')


def list_packages_imported(tree: ast.AST) -> set[str]:
    """Return the packages of cyborg_lite that a module imports from."""
    prefix = f'{PACKAGE.name}.'
    return {
        name.split('.')[1] for name in list_imports(tree) if name.startswith(prefix)
    }


def list_modules_imported(source: Source, modules: set[str]) -> set[str]:
    """Return which of the modules are imported, wholly or a name of them."""
    names = set(list_imports(source.tree))
    return modules & (names | {name.rpartition('.')[0] for name in names})


def is_test_module(name: str) -> bool:
    """Check whether an imported name is, or belongs to, a test module."""
    package, *parts = name.split('.')
    return package == 'tests' and any(part.startswith('test_') for part in parts)


def package_sources() -> Iterator[Source]:
    """Yield the modules of cyborg_lite, but not its own ``__init__.py``."""
    for source in read_sources('cyborg_lite'):
        if source.path != PACKAGE / '__init__.py':
            yield source


def join_lines(offenders: Iterable[str]) -> str:
    """Return one offender per line, for the message of an assertion."""
    return '\n' + '\n'.join(offenders)


def test_packages_import_only_allowed_packages() -> None:
    offenders = []
    for source in package_sources():
        package = package_of(source)
        assert package in MAY_IMPORT, f'add the new package {package} to MAY_IMPORT'
        forbidden = list_packages_imported(source.tree) - MAY_IMPORT[package]
        offenders += [f'{source.name}: {name}' for name in forbidden - {package}]
    assert not offenders, 'move shared code to rpc or model:' + join_lines(offenders)


def test_libraries_are_imported_by_their_users_only() -> None:
    offenders = []
    for source in package_sources():
        package = package_of(source)
        libraries = {name.partition('.')[0] for name in list_imports(source.tree)}
        offenders += [
            f'{source.name}: {library}'
            for library in libraries
            if package not in LIBRARY_USERS.get(library, {package})
        ]
    assert not offenders, 'see LIBRARY_USERS:' + join_lines(offenders)


def test_dashboard_imports_only_parts_without_libraries() -> None:
    offenders = [
        f'{source.name}: {name}'
        for source in read_sources('cyborg_lite_dashboard')
        for name in list_packages_imported(source.tree) - DASHBOARD_MAY_IMPORT
    ]
    assert not offenders, 'Horizon loads these modules:' + join_lines(offenders)


def test_vendor_drivers_do_not_import_one_another() -> None:
    """No module below drivers/ imports a vendor room, but for the room itself."""
    vendors = {
        path.parent.name for path in (PACKAGE / 'drivers').glob('*/__init__.py')
    } - SHARED_ROOMS
    offenders = []
    for source in read_sources('cyborg_lite/drivers'):
        own = source.module.split('.')[2]
        for name in list_imports(source.tree):
            room = f'{name}...'.split('.')[2]
            is_driver = name.startswith('cyborg_lite.drivers.')
            if is_driver and room in vendors and room != own:
                offenders.append(f'{source.name}: {name}')
    assert not offenders, 'move shared code to drivers/:' + join_lines(offenders)


def test_rooms_of_database_import_lower_rooms_only() -> None:
    offenders = []
    for source in read_sources('cyborg_lite/db'):
        own = f'{source.module}.'.split('.')[2]
        lower = DB_ROOMS[: DB_ROOMS.index(own) + 1] if own in DB_ROOMS else DB_ROOMS
        for name in list_imports(source.tree):
            room = f'{name}..'.split('.')[2]
            if name.startswith('cyborg_lite.db.') and room not in lower:
                offenders.append(f'{source.name}: {name}')
    assert not offenders, 'move the function to the room of its data:' + join_lines(
        offenders
    )


def test_nothing_imports_test_modules() -> None:
    offenders = [
        f'{source.name}: {name}'
        for source in read_all_sources()
        for name in list_imports(source.tree)
        if is_test_module(name)
    ]
    assert not offenders, 'move it to tests/support or builders:' + join_lines(
        offenders
    )


def test_modules_do_not_import_in_cycles() -> None:
    sources = {source.module: source for source in package_sources()}
    modules = set(sources)
    imports = {
        name: list_modules_imported(source, modules) for name, source in sources.items()
    }
    TopologicalSorter(imports).prepare()  # CycleError names the modules of the cycle


def test_files_start_with_license() -> None:
    offenders = [
        source.name
        for source in read_all_sources()
        if not source.text.startswith('# SPDX-License-Identifier: Apache-2.0\n')
    ]
    assert not offenders, join_lines(offenders)


def test_functions_are_short() -> None:
    offenders = [
        f'{source.locate(node)}: {node.name}'
        for source in read_all_sources()
        for node in list_functions(source.tree)
        if node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert not offenders, 'extract functions:' + join_lines(offenders)


def test_modules_have_docstrings() -> None:
    offenders = [
        source.name
        for source in package_sources()
        if source.path.name != '__init__.py' and not ast.get_docstring(source.tree)
    ]
    assert not offenders, 'name the subject of the module:' + join_lines(offenders)


def test_modules_are_named_by_subject() -> None:
    offenders = [
        source.name
        for source in read_all_sources()
        if VAGUE_NAMES & {source.path.stem, source.path.parent.name}
    ]
    assert not offenders, 'name the module by its subject:' + join_lines(offenders)


def test_entry_points_import_runtime_first() -> None:
    offenders = []
    for source in read_sources('cyborg_lite'):
        functions = {node.name for node in list_functions(source.tree)}
        if PACKAGE / 'cmd' in source.path.parents and 'main' in functions:
            prefix = PACKAGE.name
            modules = [
                name for name in list_imports(source.tree) if name.startswith(prefix)
            ]
            if modules[0] != 'cyborg_lite.runtime':
                offenders.append(source.name)
    assert not offenders, 'import cyborg_lite.runtime first:' + join_lines(offenders)


def test_parameters_of_tests_are_constant() -> None:
    """The workers of a parallel run must collect the same tests."""
    offenders = [
        f'{source.locate(node)}: {ast.unparse(decorator)}'
        for source in read_sources('tests')
        for node in list_functions(source.tree)
        for decorator in node.decorator_list
        if 'parametrize' in ast.unparse(decorator)
        and RANDOM_CALLS & set(re.findall(r'(\w+)\(', ast.unparse(decorator)))
    ]
    assert not offenders, 'use literals:' + join_lines(offenders)


@pytest.mark.parametrize(
    ('code', 'packages'),
    [
        ('import cyborg_lite.db.arqs.arqs', {'db'}),
        ('from cyborg_lite import conf as configuration', {'conf'}),
        ('from cyborg_lite.rpc import arguments', {'rpc'}),
        ('def late():\n    from cyborg_lite.db import arqs', {'db'}),
        ('import cyborg_lite_other.db', set()),
    ],
)
def test_imports_are_recognized_at_any_place(code: str, packages: set[str]) -> None:
    assert list_packages_imported(ast.parse(code)) == packages
