# SPDX-License-Identifier: Apache-2.0
"""Writes the help of a command as reStructuredText."""

import re
from collections.abc import Iterator, Sequence, Set
from typing import Final

from devstack.command_pages import Page

_ARGUMENT: Final = re.compile(r' {2,4}(\S.*?)(?:  +(\S.*))?')


def describe(page: Page, common: Set[str]) -> list[str]:
    """Return the section of a command as reStructuredText.

    :param common: arguments that the section leaves out
    """
    title = ' '.join(page.path)
    line = ('=' if len(page.path) == 1 else '-') * len(title)
    arguments = [pair for pair in read_arguments(page) if pair[0] not in common]
    text = page.text.split('\n\n')[1]
    summary = '' if text.startswith('options:') else _escape(' '.join(text.split()))
    return ['', title, line, '', summary, '', *tabulate(arguments)]


def read_arguments(page: Page) -> list[tuple[str, str]]:
    """Return the positional arguments and options of a command with their help."""
    blocks = re.findall(
        r'^(?:positional arguments|options):\n((?: .*\n)+)', page.text, re.MULTILINE
    )
    return [pair for block in blocks for pair in _read_block(block.splitlines())]


def _read_block(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    name, words = '', ''
    for line in lines:
        if match := _ARGUMENT.fullmatch(line):
            if name:
                yield name, words
            name, words = match.group(1), match.group(2) or ''
        else:
            words = f'{words} {line.strip()}'.strip()
    yield name, words


def tabulate(arguments: Sequence[tuple[str, str]]) -> list[str]:
    """Return the arguments and their help as a table; nothing for no arguments."""
    if not arguments:
        return []
    lines = ['.. list-table::', '   :widths: 35 65', '']
    for name, text in arguments:
        lines += [f'   * - ``{name}``', f'     - {_escape(text)}'.rstrip()]
    return [*lines, '']


def _escape(text: str) -> str:
    return re.sub(r'([*`|_\\])', r'\\\1', text)
