# SPDX-License-Identifier: Apache-2.0
"""Former servers: a disabled profile can be bound to its earlier instances only."""

from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.arqs import release as arq_release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import DeviceProfile, FormerServer
from cyborg_lite.db.profiles import profiles
from tests.builders.bind_jobs import ANY_PROJECT, accept_bind
from tests.builders.bound_arqs import bind_arqs
from tests.builders.rows import PROJECT, add_card, add_profile, bindings, states
from tests.builders.table_rows import change_rows, count_rows
from tests.support.sql_statements import statements


class Scenario:
    """Servers of one profile, on one device with four handles."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.card = add_card(database, 4)
        self.profile = add_profile(database, [{'resources:PGPU': '2'}])

    def disable(self) -> None:
        change_rows(self.database, DeviceProfile, enabled=False)

    def create(self) -> list[str]:
        created = self.database.write(arqs.create_arqs, self.profile, PROJECT)
        return [arq.uuid for arq in created]

    def bind(self, uuids: list[str]) -> str:
        """Bind ARQs to a new server; return its uuid."""
        return bind_arqs(self.database, uuids, self.card)

    def release(self, server: str) -> None:
        delete = arq_release.delete_arqs_of_instance
        self.database.write(delete, server, ANY_PROJECT, None)

    def count_former_servers(self) -> int:
        return count_rows(self.database, FormerServer)


@pytest.fixture
def scenario(database: Database) -> Scenario:
    return Scenario(database)


def test_delete_arqs_before_claim_records_no_former_server(scenario: Scenario) -> None:
    scenario.release(str(uuid4()))
    server = str(uuid4())
    accept_bind(scenario.database, bindings(scenario.create(), scenario.card, server))
    scenario.release(server)
    assert scenario.count_former_servers() == 0


def test_accept_bind_arqs_created_before_disable_succeeds(scenario: Scenario) -> None:
    uuids = scenario.create()
    scenario.disable()
    scenario.bind(uuids)
    assert states(scenario.database, uuids) == ['Bound'] * 2


def test_delete_profile_deletes_former_servers(scenario: Scenario) -> None:
    scenario.release(scenario.bind(scenario.create()))
    assert scenario.count_former_servers() == 1
    scenario.database.write(profiles.delete_profiles, [scenario.profile])
    assert scenario.count_former_servers() == 0


def test_bind_enabled_profile_does_not_query_former_servers(scenario: Scenario) -> None:
    with statements(scenario.database) as sql:
        scenario.bind(scenario.create())
    assert not [text for text in sql if 'former_servers' in text]
