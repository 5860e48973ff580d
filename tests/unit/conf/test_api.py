# SPDX-License-Identifier: Apache-2.0
"""Defaults and limits of the API options."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration


def _parse(tmp_path: Path, line: str) -> None:
    path = tmp_path / 'cyborg-lite.conf'
    path.write_text(f'[api]\n{line}\n')
    configuration.parse([], 'prog', [str(path)])


def test_defaults_are_safe() -> None:
    api = configuration.parse([], 'prog', []).api
    assert api.auth_strategy == 'keystone'
    assert api.hold_power_on
    assert api.refuse_failed_binds
    assert not api.refuse_impossible_profiles


@pytest.mark.parametrize(
    'line',
    [
        'auth_strategy = none',
        'public_endpoint = ftp://cloud.example',
        'threads = 0',
        'max_name_length = 256',  # the width of the column
        'max_accel_value_length = 35',  # shorter than a uuid
        'port = 65536',
        'max_connections = 0',
    ],
)
def test_parse_invalid_api_value_exits_with_option(tmp_path: Path, line: str) -> None:
    with pytest.raises(SystemExit, match=line.split()[0]):
        _parse(tmp_path, line)
