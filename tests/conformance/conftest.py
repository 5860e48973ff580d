# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the conformance suite."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Host whose sysfs tree is in an empty directory."""
    return Host('compute-1', tmp_path)
