# SPDX-License-Identifier: Apache-2.0
"""Tests of the version of the package."""

from importlib import metadata

import pytest

from cyborg_lite.version import version


def test_version_is_that_of_installed_package() -> None:
    assert version() == metadata.version('cyborg-lite')


def test_version_of_missing_package_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_not_found(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, 'version', raise_not_found)
    assert version() == 'unknown'
