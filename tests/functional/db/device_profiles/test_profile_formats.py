# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name, on servers."""

from tests.unit.db.device_profiles.test_profile_formats import *  # noqa: F403
