# SPDX-License-Identifier: Apache-2.0
"""Fixture of an empty database on MariaDB and on PostgreSQL."""

from tests.servers.databases import database_fixture

database = database_fixture('mariadb', 'postgresql')
