# SPDX-License-Identifier: Apache-2.0
"""Tests of opening the configured database."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite import runtime
from cyborg_lite.cmd.support import database
from cyborg_lite.errors.daemons import ConfigurationError


def _file(folder: Path, *lines: str) -> list[str]:
    file = folder / 'cyborg-lite.conf'
    file.write_text('\n'.join(['[database]', *lines, '']))
    return [str(file)]


def test_database_blocking_driver_under_eventlet_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = 'connection = postgresql+psycopg://user@host/name'
    conf = configuration.parse([], 'test', _file(tmp_path, connection))
    database.from_configuration(conf)
    monkeypatch.setattr(runtime, 'BACKEND', 'eventlet')
    with pytest.raises(ConfigurationError, match='under eventlet'):
        database.from_configuration(conf)
