# SPDX-License-Identifier: Apache-2.0
"""Tests of the service that lists deployables."""

from cyborg_lite.conductor.devices.deployables import DeployableService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.queries import Query
from tests.builders.provider_rows import add_device


def test_list_applies_filters_and_page(database: Database) -> None:
    service = DeployableService(database)
    for part in ('a', 'b', 'c'):
        add_device(database, 'compute-1', part)
    names = [row.name for row in service.list(Query(sort_key='name'))]
    assert sorted(names) == ['compute-1_a', 'compute-1_b', 'compute-1_c']
    (deployable,) = service.list(Query(filters={'name': ('compute-1_b',)}))
    assert deployable.name == 'compute-1_b'
    assert len(service.list(Query(limit=2))) == 2
    assert service.list(Query(filters={'name': ('none',)})) == ()
