# SPDX-License-Identifier: Apache-2.0
"""Test of the page of the error codes."""

from devstack import error_codes


def test_page_is_current() -> None:
    current = error_codes.PAGE.read_text()
    assert current == error_codes.page(), 'run `tox run -e generrors`'
