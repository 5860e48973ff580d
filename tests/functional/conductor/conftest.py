# SPDX-License-Identifier: Apache-2.0
"""An empty database for each test that asks for one, of each kind in turn."""

from tests.fakes.databases import database_fixture

database = database_fixture('mariadb', 'postgresql')
