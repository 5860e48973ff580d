# SPDX-License-Identifier: Apache-2.0
"""Entry points of the package. ``tests/conformance`` builds and installs the wheel."""

import configparser
import importlib
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

import pytest

from tests.support.sources import list_imports, read_sources

ROOT: Final = Path(__file__).parents[2]

# Packages that are imported only if an extra of setup.cfg is installed.
EXTRAS: Final = {'cliff', 'eventlet', 'osc_lib', 'oslo_limit', 'pynvml'}

# oslo.messaging has no public interface for these uses; see the contributor guide.
PRIVATE_MODULES: Final = {'oslo_messaging._drivers'}


def read_setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg')
    return parser


def list_entry_points() -> list[str]:
    """Return the targets ``module:name`` of all groups in ``setup.cfg``."""
    section = read_setup()['options.entry_points']
    return [
        line.partition('=')[2].strip()
        for group in section.values()
        for line in group.strip().splitlines()
    ]


@pytest.mark.parametrize('target', list_entry_points())
def test_entry_point_target_is_callable(target: str) -> None:
    name, _, attribute = target.partition(':')
    module = importlib.import_module(name)
    # The entry point of the openstack client is a module with a function.
    assert callable(getattr(module, attribute or 'make_client'))


def list_imported_names() -> set[str]:
    return {
        name
        for source in read_sources('cyborg_lite')
        for name in list_imports(source.tree)
    }


def test_requirements_are_exactly_the_imported_libraries() -> None:
    tops = {name.partition('.')[0] for name in list_imported_names()}
    libraries = tops - set(sys.stdlib_module_names) - {'cyborg_lite'} - EXTRAS
    providers = metadata.packages_distributions()
    imported = {normalize_name(providers[library][0]) for library in libraries}
    lines = (ROOT / 'requirements.txt').read_text().splitlines()
    declared = {
        normalize_name(re.split(r'[\[><=]', line)[0])
        for line in lines
        if not line.startswith('#')
    }
    # SQLAlchemy loads the database driver by its name.
    assert declared - {'pymysql'} == imported


def test_no_private_module_of_a_library_is_imported() -> None:
    private = {
        name
        for name in list_imported_names()
        if not name.startswith('cyborg_lite')
        and any(part.startswith('_') for part in name.split('.')[:-1])
    }
    permitted = {name for name in private if name.startswith(tuple(PRIVATE_MODULES))}
    assert private - permitted == set()


def normalize_name(name: str) -> str:
    """Return the name of a distribution as package indexes compare it."""
    return re.sub(r'[-_.]+', '-', name).lower()
