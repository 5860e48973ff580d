# SPDX-License-Identifier: Apache-2.0
"""Tests of the options of limits of projects."""

from pathlib import Path

from oslo_config import cfg

from cyborg_lite import conf as configuration


def parse(tmp_path: Path, *lines: str) -> cfg.ConfigOpts:
    """Return the options of a configuration file."""
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text('\n'.join(lines))
    return configuration.parse([], 'prog', [str(file)])


def test_limits_are_off_by_default(tmp_path: Path) -> None:
    assert parse(tmp_path).limits.enabled is False


def test_limits_are_on_if_enabled(tmp_path: Path) -> None:
    assert parse(tmp_path, '[limits]', 'enabled = true').limits.enabled is True
