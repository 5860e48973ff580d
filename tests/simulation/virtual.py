# SPDX-License-Identifier: Apache-2.0
"""Replaces threads and clocks when it is imported, before any module that uses them."""

from tests.simulation import scheduler

scheduler.install()
