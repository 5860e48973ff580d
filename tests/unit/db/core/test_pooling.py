# SPDX-License-Identifier: Apache-2.0
"""Tests of the plugin of SQLAlchemy that changes the arguments of pools."""

from sqlalchemy import create_engine, make_url

from cyborg_lite.db.core import engine


def test_add_plugin_disables_statements_of_pool() -> None:
    arguments = {'pre_ping': True, 'reset_on_return': 'rollback', 'size': 3}
    url = engine.add_plugin(make_url('sqlite://'))
    engine.PoolPlugin(url, {}).handle_pool_kwargs(None, arguments)
    assert arguments == {'pre_ping': False, 'reset_on_return': None, 'size': 3}


def test_add_plugin_keeps_url_of_engine() -> None:
    url = make_url('mysql+pymysql://joe@host/name?charset=utf8mb4')
    assert create_engine(engine.add_plugin(url)).url == url
