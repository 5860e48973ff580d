# SPDX-License-Identifier: Apache-2.0
"""Addresses of databases: what is added, what is left alone, what is refused."""

import pytest

from cyborg_lite.db import dialects
from cyborg_lite.exceptions import ConfigurationError


@pytest.mark.parametrize(
    ('given', 'driver'),
    [
        ('mysql://u@h/d', 'mysql+pymysql'),
        ('mariadb://u@h/d', 'mysql+pymysql'),
        ('mysql+mysqldb://u@h/d', 'mysql+mysqldb'),
        # oslo.db knows the errors of this server by the other name only.
        ('mariadb+pymysql://u@h/d', 'mysql+pymysql'),
        ('postgresql://u@h/d', 'postgresql+psycopg'),
        ('postgresql+psycopg2://u@h/d', 'postgresql+psycopg2'),
        ('sqlite:////tmp/file', 'sqlite'),
    ],
)
def test_a_driver_is_chosen_where_none_is_given(given: str, driver: str) -> None:
    assert dialects.vetted(given).drivername == driver


@pytest.mark.parametrize('given', ['mysql://u@h/d', 'postgresql://u@h/d'])
def test_a_server_that_is_away_costs_seconds(given: str) -> None:
    assert dialects.vetted(given).query['connect_timeout'] == '3'


def test_what_the_operator_gives_is_kept() -> None:
    url = dialects.vetted('mysql://u:p@h/d?connect_timeout=9&charset=utf8&ssl_ca=/ca')
    assert url.query['connect_timeout'] == '9'
    assert url.query['charset'] == 'utf8'
    assert url.query['ssl_ca'] == '/ca'
    assert url.password == 'p'


def test_every_character_can_be_sent_to_mysql() -> None:
    assert dialects.vetted('mysql://u@h/d').query['charset'] == 'utf8mb4'


@pytest.mark.parametrize(
    'given',
    [
        'nonsense secret',
        'oracle://u:secret@h/d',
        'sqlite://',
        'sqlite:///:memory:',
        '',
        'mysql://u:secret@h:port/d',
    ],
)
def test_what_is_no_database_for_us_is_refused_without_its_password(given: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        dialects.vetted(given)
    assert 'secret' not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    'given',
    [
        'mysql+mysqldb://u@h/d',
        'mariadb+mysqldb://u@h/d',
        'postgresql+psycopg://u@h/d',
        'postgresql://u@h/d',
    ],
)
def test_drivers_that_block_green_threads_are_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match='under eventlet'):
        dialects.refuse_blocking_driver(given, 'eventlet')
    dialects.refuse_blocking_driver(given, 'threading')


@pytest.mark.parametrize(
    'given', ['mysql://u@h/d', 'postgresql+psycopg2://u@h/d', 'sqlite:////tmp/file']
)
def test_other_drivers_serve_both(given: str) -> None:
    dialects.refuse_blocking_driver(given, 'eventlet')
    dialects.refuse_blocking_driver(given, 'threading')
