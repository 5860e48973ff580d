# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name, on each real database."""

from tests.unit.conductor.arqs.test_unowned_handles import *  # noqa: F403  # the tests themselves
