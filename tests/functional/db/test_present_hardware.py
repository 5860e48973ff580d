# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name, on each kind of database."""

from tests.unit.db.test_present_hardware import *  # noqa: F403  # runs the tests again
