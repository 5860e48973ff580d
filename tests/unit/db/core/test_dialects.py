# SPDX-License-Identifier: Apache-2.0
"""Database URLs: default options, kept options and unsupported URLs."""

import pytest

from cyborg_lite.db.core import dialects
from cyborg_lite.errors.daemons import ConfigurationError


@pytest.mark.parametrize('url', ['mysql://u@h/d', 'postgresql://u@h/d'])
def test_validate_url_sets_connect_timeout(url: str) -> None:
    assert dialects.validate_url(url).query['connect_timeout'] == '3'


def test_validate_url_keeps_given_options() -> None:
    url = dialects.validate_url(
        'mysql://u:p@h/d?connect_timeout=9&charset=utf8&ssl_ca=/ca'
    )
    assert url.query['connect_timeout'] == '9'
    assert url.query['charset'] == 'utf8'
    assert url.query['ssl_ca'] == '/ca'
    assert url.password == 'p'


def test_validate_url_mysql_charset_is_utf8mb4() -> None:
    assert dialects.validate_url('mysql://u@h/d').query['charset'] == 'utf8mb4'


@pytest.mark.parametrize(
    'url',
    [
        'nonsense secret',
        'oracle://u:secret@h/d',
        'sqlite://',
        'sqlite:///:memory:',
        '',
        'mysql://u:secret@h:port/d',
    ],
)
def test_validate_url_unsupported_raises_without_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        dialects.validate_url(url)
    assert 'secret' not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    'url',
    [
        'mysql+mysqldb://u@h/d',
        'mariadb+mysqldb://u@h/d',
        'postgresql+psycopg://u@h/d',
        'postgresql://u@h/d',
    ],
)
def test_refuse_blocking_driver_under_eventlet_raises(url: str) -> None:
    with pytest.raises(ConfigurationError, match='under eventlet'):
        dialects.refuse_blocking_driver(url, 'eventlet')
    dialects.refuse_blocking_driver(url, 'threading')


@pytest.mark.parametrize(
    'url', ['mysql://u@h/d', 'postgresql+psycopg2://u@h/d', 'sqlite:////tmp/file']
)
def test_refuse_blocking_driver_accepts_cooperative_drivers(url: str) -> None:
    dialects.refuse_blocking_driver(url, 'eventlet')
    dialects.refuse_blocking_driver(url, 'threading')
