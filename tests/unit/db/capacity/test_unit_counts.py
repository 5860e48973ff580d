# SPDX-License-Identifier: Apache-2.0
"""Numbers of ARQs and daemons."""

from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from tests.builders.rows import add_arqs


def test_count_arqs_by_state(database: Database) -> None:
    assert database.read(provider_capacity.count_arqs) == {}
    add_arqs(database, 3)
    assert database.read(provider_capacity.count_arqs) == {'Initial': 3}
