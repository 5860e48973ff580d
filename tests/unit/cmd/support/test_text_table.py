# SPDX-License-Identifier: Apache-2.0
"""Tests of text tables."""

import sys

import pytest

from cyborg_lite.cmd.support.text_table import format_table

ROWS = [('HOST', 'REASON'), ('compute-1', 'The fan of the card is broken.'), ('c', '-')]


def test_table_without_terminal_has_one_line_per_row() -> None:
    assert format_table(ROWS).splitlines() == [
        'HOST       REASON',
        'compute-1  The fan of the card is broken.',
        'c          -',
    ]


def test_wide_cells_continue_on_next_line() -> None:
    assert format_table(ROWS, width=30).splitlines() == [
        'HOST       REASON',
        'compute-1  The fan of the card',
        '           is broken.',
        'c          -',
    ]


def test_long_word_is_broken() -> None:
    lines = format_table([('UUID', 'N'), ('a' * 20, 1)], width=13).splitlines()
    assert lines == ['UUID        N', 'aaaaaaaaaa  1', 'aaaaaaaaaa']


def test_table_fits_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, 'isatty', lambda: True, raising=False)
    monkeypatch.setenv('COLUMNS', '24')
    assert max(len(line) for line in format_table(ROWS).splitlines()) <= 24


def test_empty_table_has_headings_or_text() -> None:
    assert format_table(ROWS[:1]) == 'HOST  REASON'
    assert format_table(ROWS[:1], 'Nothing to do.') == 'Nothing to do.'
    assert 'Nothing' not in format_table(ROWS, 'Nothing to do.')
