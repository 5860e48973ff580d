# SPDX-License-Identifier: Apache-2.0
"""Setup of the unit tests: the number of processes."""

import os

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for ``-n auto``: two per processor.

    Some tests wait for processes and timeouts, during which another test can run.
    """
    return 2 * len(os.sched_getaffinity(0))
