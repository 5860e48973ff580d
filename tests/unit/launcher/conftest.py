# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the launcher tests."""

from pathlib import Path

import pytest

from devstack.launcher import environment, paths


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Redirect all files of the launcher to a temporary directory."""
    default = paths.TOP
    for name, path in tuple(vars(paths).items()):
        if isinstance(path, Path) and path.is_relative_to(default):
            monkeypatch.setattr(paths, name, tmp_path / path.relative_to(default))
    monkeypatch.setattr(environment, '_LOG', tmp_path / 'logs' / 'install.log')
    return tmp_path
