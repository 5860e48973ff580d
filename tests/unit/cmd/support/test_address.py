# SPDX-License-Identifier: Apache-2.0
"""Tests of removing credentials from URLs."""

import pytest

from cyborg_lite.cmd.support import address


@pytest.mark.parametrize(
    ('url', 'expected'),
    [
        ('rabbit://joe:secret@one:5672/cloud', 'rabbit://one:5672/cloud'),
        (
            'rabbit://joe:secret@one:5672,jim:hidden@two:5672/cloud',
            'rabbit://one:5672,two:5672/cloud',
        ),
        ('mysql+pymysql://u:p%40ss@db/cyborg?password=x', 'mysql+pymysql://db/cyborg'),
        ('sqlite:////var/lib/cyborg.sqlite', 'sqlite:////var/lib/cyborg.sqlite'),
        ('local://', 'local://'),
        ('rabbit:/', 'rabbit:/'),
        ('not a url at all, joe:secret@here', 'an invalid URL'),
        ('mysql://u:p@ss@db/cyborg', 'mysql://db/cyborg'),
    ],
)
def test_without_password_keeps_hosts_and_path(url: str, expected: str) -> None:
    assert address.without_password(url) == expected
