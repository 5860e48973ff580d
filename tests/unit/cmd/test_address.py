# SPDX-License-Identifier: Apache-2.0
"""What of a URL may stand in a log."""

import pytest

from cyborg_lite.cmd import address


@pytest.mark.parametrize(
    ('url', 'shown'),
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
        ('not a url at all, joe:secret@here', 'an unreadable address'),
        ('mysql://u:p@ss@db/cyborg', 'mysql://db/cyborg'),
    ],
)
def test_hosts_are_shown_and_credentials_are_not(url: str, shown: str) -> None:
    assert address.without_password(url) == shown
