# SPDX-License-Identifier: Apache-2.0
"""The promises of the unit tests of the audit, on each real database."""

from tests.unit.conductor.test_audit import *  # noqa: F403  # the tests themselves
