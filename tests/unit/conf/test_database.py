# SPDX-License-Identifier: Apache-2.0
"""Options of the database connection."""

import logging

import pytest

from cyborg_lite import conf as configuration


def test_connection_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    conf = configuration.parse([], 'prog', [])
    conf.set_override('connection', 'mysql://u:hunter2@db/x', group='database')
    logger = logging.getLogger('test')
    with caplog.at_level(logging.INFO, logger='test'):
        conf.log_opt_values(logger, logging.INFO)
    assert 'database.connection' in caplog.text
    assert 'hunter2' not in caplog.text


def test_wsrep_sync_wait_is_unset_by_default() -> None:
    assert configuration.parse([], 'prog', []).database.mysql_wsrep_sync_wait is None
