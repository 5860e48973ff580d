# SPDX-License-Identifier: Apache-2.0
"""Tests of the options of RPC versions during an upgrade."""

from pathlib import Path

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration


def parse(tmp_path: Path, *lines: str) -> cfg.ConfigOpts:
    """Return the options of a configuration file."""
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text('\n'.join(lines))
    return configuration.parse([], 'prog', [str(file)])


@pytest.mark.parametrize('level', ['auto', '1.2', '1.13'])
def test_level_is_auto_or_version(tmp_path: Path, level: str) -> None:
    conf = parse(tmp_path, '[upgrade_levels]', f'conductor = {level}')
    assert (conf.upgrade_levels.conductor, conf.upgrade_levels.agent) == (level, 'auto')


@pytest.mark.parametrize('level', ['1', 'wallaby'])
def test_other_level_stops_start(tmp_path: Path, level: str) -> None:
    with pytest.raises(SystemExit, match='agent'):
        parse(tmp_path, '[upgrade_levels]', f'agent = {level}')
