# SPDX-License-Identifier: Apache-2.0
"""Setup of the functional tests: the number of processes."""

import os

import pytest


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for ``-n auto``: two per processor.

    Most tests wait for daemons, during which another test can run.
    """
    return 2 * len(os.sched_getaffinity(0))
