# SPDX-License-Identifier: Apache-2.0
"""Fixture of an empty SQLite database."""

from tests.servers.databases import database_fixture

database = database_fixture('sqlite')
