# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name on MariaDB and PostgreSQL."""

from tests.unit.conductor.bitstreams.test_programming import *  # noqa: F403  # runs the tests again
