# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name, on servers."""

from tests.unit.db.profiles.test_formats import *  # noqa: F403
