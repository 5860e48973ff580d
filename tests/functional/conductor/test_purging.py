# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name on each kind of database."""

from tests.unit.conductor.jobs.test_purging import *  # noqa: F403  # the tests themselves
