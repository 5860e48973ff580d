# SPDX-License-Identifier: Apache-2.0
"""Places of a launcher that belongs to one test."""

from pathlib import Path

import pytest

from devstack.launcher import environment, places


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All that the launcher keeps lies in there."""
    usual = places.TOP
    for name, place in tuple(vars(places).items()):
        if isinstance(place, Path) and place.is_relative_to(usual):
            monkeypatch.setattr(places, name, tmp_path / place.relative_to(usual))
    monkeypatch.setattr(environment, '_LOG', tmp_path / 'logs' / 'install.log')
    return tmp_path
