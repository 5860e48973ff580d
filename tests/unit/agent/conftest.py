# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the agent tests: an empty cache and an empty journal."""

from pathlib import Path

import pytest

from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / 'state')


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / 'state')
