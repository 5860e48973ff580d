# SPDX-License-Identifier: Apache-2.0
"""Modules that README and the contributor guide name must exist."""

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
PACKAGE: Final = ROOT / 'cyborg_lite'
_LITERAL: Final = re.compile(r'``([\w/.]+)``')
_LAYERS: Final = ('model', 'db', 'conductor', 'agent')


def _read_rows(path: Path, head: str) -> list[str]:
    """Return the rows of the table whose header line starts with a word."""
    lines = path.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(head))
    rows = lines[first + 2 :]
    return rows[: next(n for n, line in enumerate(rows) if line.startswith('==='))]


def _read_cells(row: str, border: str) -> list[str]:
    """Return the literal in each column of a row; empty if there is none."""
    columns = [match.span() for match in re.finditer('=+', border)]
    return [row[start:end].strip().strip('`') for start, end in columns]


@pytest.mark.parametrize('row', _read_rows(ROOT / 'README.rst', 'Subject'))
def test_readme_names_existing_modules(row: str) -> None:
    first, *further = _LITERAL.findall(row)
    assert (PACKAGE / first).exists()
    for name in further:
        assert (PACKAGE / name).exists() or (PACKAGE / first).with_name(name).exists()


def test_page_of_features_names_existing_modules() -> None:
    page = ROOT / 'doc/source/contributor/features.rst'
    border = next(
        line
        for line in page.read_text().splitlines()
        if line.startswith('===== ') or re.match(r'=+  =', line)
    )
    rows = _read_rows(page, 'Feature')
    assert rows
    for row in rows:
        _, *folders, controller = _read_cells(row, border)
        for layer, folder in zip(_LAYERS, folders, strict=True):
            assert (PACKAGE / layer / folder).exists(), f'{layer}/{folder}'
        if controller:
            assert (PACKAGE / 'api/views' / f'{controller}.py').exists(), controller
