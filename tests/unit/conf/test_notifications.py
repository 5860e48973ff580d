# SPDX-License-Identifier: Apache-2.0
"""Tests of the options of notifications."""

from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration


def parse(tmp_path: Path, *lines: str) -> cfg.ConfigOpts:
    """Return the options of a configuration file."""
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text('\n'.join(lines))
    return configuration.parse([], 'prog', [str(file)])


def test_notifications_are_off_by_default(tmp_path: Path) -> None:
    assert parse(tmp_path).notifications.enabled is False


@pytest.mark.parametrize('line', ['topic = a b', 'topic =', 'max_backlog = 1'])
def test_invalid_option_stops_start(tmp_path: Path, line: str) -> None:
    with pytest.raises(SystemExit, match=line.split()[0]):
        parse(tmp_path, '[notifications]', line)
