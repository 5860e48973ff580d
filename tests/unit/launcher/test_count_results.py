# SPDX-License-Identifier: Apache-2.0
"""Tests of counting the results of a test run."""

from pathlib import Path

from devstack import count_results

_RESULT = (
    '<testsuites><testsuite name="pytest" tests="{tests}" failures="{failures}" '
    'errors="{errors}" skipped="{skipped}"/></testsuites>'
)


def write(path: Path, tests: int, failures: int, errors: int, skipped: int) -> None:
    path.write_text(
        _RESULT.format(tests=tests, failures=failures, errors=errors, skipped=skipped)
    )


def test_count_adds_all_suites(tmp_path: Path) -> None:
    write(tmp_path / 'unit.xml', tests=10, failures=1, errors=2, skipped=3)
    write(tmp_path / 'functional.xml', tests=5, failures=0, errors=0, skipped=0)
    total = count_results.count_results(tmp_path)
    assert total == {'passed': 9, 'failed': 3, 'skipped': 3}


def test_count_without_results_is_zero(tmp_path: Path) -> None:
    assert count_results.count_results(tmp_path)['passed'] == 0
