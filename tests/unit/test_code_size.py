# SPDX-License-Identifier: Apache-2.0
"""Budgets of the code: lines, modules side by side, repeated names."""

from typing import Final

from tests.support.code_size import (
    count_copies_per_thousand,
    count_lines,
    count_modules_by_folder,
    list_copies,
    read_service,
)
from tests.support.sources import read_sources

MAX_SERVICE_LINES: Final = 72_000
MAX_TEST_LINES: Final = 95_000
MAX_MODULES: Final = 14
MAX_COPIES: Final = 4.0
"""Per 1,000 lines."""


def test_service_stays_within_line_budget() -> None:
    assert count_lines(read_service()) <= MAX_SERVICE_LINES


def test_tests_stay_within_line_budget() -> None:
    assert count_lines(read_sources('tests')) <= MAX_TEST_LINES


def test_folders_have_few_modules_side_by_side() -> None:
    modules = count_modules_by_folder(read_sources('cyborg_lite'))
    offenders = {name: n for name, n in modules.items() if n > MAX_MODULES}
    assert not offenders, 'group the modules by subject'


def test_names_are_seldom_copied() -> None:
    service = read_service()
    offenders = sorted(
        ((len(list_copies(source)), source.name) for source in service), reverse=True
    )
    assert count_copies_per_thousand(service) <= MAX_COPIES, offenders[:10]
