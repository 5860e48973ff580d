# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name, on servers."""

from tests.unit.db.test_cyborg_import import *  # noqa: F403
