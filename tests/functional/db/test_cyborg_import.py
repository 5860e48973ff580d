# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name, on servers."""

from tests.unit.cyborg_import.test_stored_rows import *  # noqa: F403
