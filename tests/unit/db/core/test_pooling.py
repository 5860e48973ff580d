# SPDX-License-Identifier: Apache-2.0
"""Tests of the plugin of SQLAlchemy that changes the arguments of pools."""

from sqlalchemy import create_engine, make_url

from cyborg_lite.db.core import engine


def test_add_plugin_keeps_url_of_engine() -> None:
    url = make_url('mysql+pymysql://joe@host/name?charset=utf8mb4')
    assert create_engine(engine.add_plugin(url)).url == url
