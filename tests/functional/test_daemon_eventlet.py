# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the daemon runner with eventlet instead of threads."""

import pytest

from tests.unit.cmd.test_daemon import *  # noqa: F403  # runs the tests again


@pytest.fixture  # type: ignore[no-redef]  # replaces the imported fixture
def backend() -> str:
    return 'eventlet'
