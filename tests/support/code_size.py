# SPDX-License-Identifier: Apache-2.0
"""Size and repetition of the code: ``python -m tests.support.code_size`` prints them.

The service is the package without the import from Cyborg and the kit for driver
authors. It imports the standard library only, because the lint suite installs nothing
else.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from tests.support.sources import PACKAGE, Source, read_sources

# Packages that are no part of the service, and which nothing of the service imports.
SEPARATE: Final = ('cyborg_import', 'testing')


def read_service() -> list[Source]:
    """Return the sources of the service."""
    return [
        source
        for source in read_sources('cyborg_lite')
        if source.path.relative_to(PACKAGE).parts[0] not in SEPARATE
    ]


def count_lines(sources: Iterable[Source]) -> int:
    """Return the number of lines, with comments and empty lines."""
    return sum(source.text.count('\n') for source in sources)


def count_lines_by_room(sources: Iterable[Source]) -> Counter[str]:
    """Return the number of lines by package; a module of the top has its own name."""
    lines: Counter[str] = Counter()
    for source in sources:
        parts = source.path.relative_to(PACKAGE).parts
        lines[parts[0].removesuffix('.py')] += source.text.count('\n')
    return lines


def count_modules_by_folder(sources: Iterable[Source]) -> Counter[str]:
    """Return the number of modules that stand side by side, by folder."""
    return Counter(
        str(source.path.parent.relative_to(PACKAGE.parent))
        for source in sources
        if source.path.name != '__init__.py'
    )


def list_copies(source: Source) -> list[ast.AST]:
    """Return the arguments and entries that repeat a name, as in ``host=row.host``."""
    return [
        value
        for name, value in _list_named_values(source.tree)
        if isinstance(value, ast.Attribute) and value.attr == name
    ]


def _list_named_values(tree: ast.AST) -> Iterator[tuple[str | None, ast.AST]]:
    """Yield keyword arguments, and the entries of dictionaries with constant keys."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from ((keyword.arg, keyword.value) for keyword in node.keywords)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, value


def count_copies_per_thousand(sources: Iterable[Source]) -> float:
    """Return the number of copied names per 1,000 lines."""
    sources = list(sources)
    copies = sum(len(list_copies(source)) for source in sources)
    return 1000 * copies / count_lines(sources)


def main() -> None:
    """Print the figures."""
    service = read_service()
    package = list(read_sources('cyborg_lite'))
    print(f'lines of the service: {count_lines(service):,}')
    for room, lines in count_lines_by_room(package).most_common():
        print(f'  {lines:6,} {room}')
    print(f'lines of the tests: {count_lines(read_sources("tests")):,}')
    copies = count_copies_per_thousand(service)
    print(f'copies x=row.x per 1,000 lines of the service: {copies:.1f}')
    print('modules side by side, the largest folders:')
    for folder, number in count_modules_by_folder(package).most_common(5):
        print(f'  {number:6} {folder}')


if __name__ == '__main__':
    main()
