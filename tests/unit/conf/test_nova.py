# SPDX-License-Identifier: Apache-2.0
"""Tests of the options of the connection to Nova."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.conf import nova


def parse(tmp_path: Path, line: str) -> object:
    """Return the value of ``attaches_mdev`` with a line in the section."""
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[nova]\n{line}\n')
    return configuration.parse([], 'prog', [str(file)]).nova.attaches_mdev


@pytest.mark.parametrize(
    ('line', 'attaches'),
    [
        ('', None),
        ('attaches_mdev = auto', None),
        ('attaches_mdev = true', True),
        ('attaches_mdev = false', False),
    ],
)
def test_attaches_mdev_has_three_values(
    tmp_path: Path, line: str, attaches: bool | None
) -> None:
    assert nova.ATTACHES_MDEV[str(parse(tmp_path, line))] is attaches


def test_attaches_mdev_other_value_stops_start(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match='attaches_mdev'):
        parse(tmp_path, 'attaches_mdev = maybe')


def test_unmanaged_handles_are_refused_by_default() -> None:
    assert configuration.parse([], 'prog', []).nova.attaches_unmanaged is False


def test_sample_has_options_of_authentication_plugins() -> None:
    names = {option.name for option in nova.SAMPLE_OPTIONS}
    assert {'attaches_mdev', 'auth_url', 'password'} <= {
        name.replace('-', '_') for name in names
    }
