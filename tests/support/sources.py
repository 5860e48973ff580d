# SPDX-License-Identifier: Apache-2.0
"""Parsed Python sources of the checkout, for tests that measure the code itself.

It imports the standard library only, because the lint suite installs nothing else.
"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = ROOT / 'cyborg_lite'
TREES: Final = (
    *('cyborg_lite', 'cyborg_lite_dashboard', 'devstack', 'benchmarks', 'alembic'),
    'tests',
)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file with its text and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Path below the checkout, as an error message prints it."""
        return str(self.path.relative_to(ROOT))

    @property
    def module(self) -> str:
        """Dotted name of the module."""
        return '.'.join(self.path.relative_to(ROOT).with_suffix('').parts)

    def locate(self, node: ast.AST) -> str:
        """Return ``file:line`` of a node; a module is at line 1."""
        return f'{self.name}:{getattr(node, "lineno", 1)}'


@functools.cache
def read_sources(tree: str) -> tuple[Source, ...]:
    """Parse all Python files of one of ``TREES``; each file is parsed once."""
    paths = sorted((ROOT / tree).rglob('*.py'))
    # The devstack keeps its virtual environments there.
    return tuple(read_source(path) for path in paths if '.standalone' not in path.parts)


def read_source(path: Path) -> Source:
    """Parse one file."""
    text = path.read_text()
    return Source(path, text, ast.parse(text))


def read_all_sources() -> Iterator[Source]:
    """Yield the sources of all trees."""
    for tree in TREES:
        yield from read_sources(tree)


def list_functions(tree: ast.AST) -> Iterator[Function]:
    """Yield all functions and methods below a node, nested ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def list_imports(tree: ast.AST) -> Iterator[str]:
    """Yield the full names that are imported anywhere below a node."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f'{node.module}.{alias.name}' for alias in node.names)
