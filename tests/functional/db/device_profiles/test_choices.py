# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name on each kind of database."""

from tests.unit.db.profiles.test_choices import *  # noqa: F403  # the tests themselves
