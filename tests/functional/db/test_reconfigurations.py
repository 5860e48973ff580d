# SPDX-License-Identifier: Apache-2.0
"""The tests of the job of reconfigurations, on each real database."""

from tests.unit.conductor.devices.test_reconfiguring import *  # noqa: F403  # the tests
