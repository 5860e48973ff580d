# SPDX-License-Identifier: Apache-2.0
"""Tests of the attributes of deployables."""

import pytest

from cyborg_lite.conductor.devices.attributes import AttributeService
from cyborg_lite.conductor.devices.deployables import DeployableService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.devices import AttributeExists, AttributeNotFound
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.queries import Query
from tests.builders.reports import HOST, card


@pytest.fixture
def deployable(database: Database) -> DeployableRecord:
    database.write(reports.store_report, HostReport(HOST, 'boot', (card(0x3B),)))
    (deployable,) = DeployableService(database).list(Query())
    return deployable


def test_attribute_is_listed_until_deleted(
    database: Database, deployable: DeployableRecord
) -> None:
    service = AttributeService(database)
    attribute = service.create(deployable.id, key='rack', value='r1')
    assert attribute in service.list(Query())
    service.delete(attribute.uuid)
    assert attribute not in service.list(Query())
    with pytest.raises(AttributeNotFound):
        service.delete(attribute.uuid)


def test_second_attribute_with_key_is_refused(
    database: Database, deployable: DeployableRecord
) -> None:
    service = AttributeService(database)
    service.create(deployable.id, key='rack', value='r1')
    with pytest.raises(AttributeExists):
        service.create(deployable.id, key='rack', value='r2')
