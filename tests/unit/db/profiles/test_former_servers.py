# SPDX-License-Identifier: Apache-2.0
"""Former servers: a disabled profile can be bound to its earlier instances only."""

from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from cyborg_lite.db.arqs import arqs, binding
from cyborg_lite.db.arqs import release as arq_release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import DeviceProfile, FormerServer
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.rows import OWNER, PROJECT, add_card, add_profile, bindings, states
from tests.support.sql_statements import statements

ANY_PROJECT = Scope(project_id=None)


class Scenario:
    """Servers of one profile, on one device with four handles."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.card = add_card(database, 4)
        self.profile = add_profile(database, [{'resources:PGPU': '2'}])

    def enable(self, enabled: bool) -> None:
        statement = update(DeviceProfile).values(enabled=enabled)
        self.database.write(lambda session: session.execute(statement))

    def create(self, *, of_service: bool = True) -> list[str]:
        created = self.database.write(
            arqs.create_arqs, self.profile, PROJECT, of_service=of_service
        )
        return [arq.uuid for arq in created]

    def bind(self, uuids: list[str], server: str) -> None:
        binding_by_arq, new = (
            bindings(uuids, self.card, server),
            NewJob(OperationKind.BIND),
        )
        job = self.database.write(
            binding.accept_bind, binding_by_arq, ANY_PROJECT, new, OWNER
        )
        event_job = NewJob(OperationKind.NOVA_EVENT)
        event = self.database.write(
            binding.claim_for_bind, job, uuids, None, event_job
        ).job
        self.database.write(queue.finish_job, event)

    def release(self, server: str) -> None:
        self.database.write(
            arq_release.delete_arqs_of_instance, server, ANY_PROJECT, None
        )

    def count_former_servers(self) -> int:
        count = select(func.count()).select_from(FormerServer)
        return self.database.read(lambda session: session.scalar(count)) or 0


@pytest.fixture
def scenario(database: Database) -> Scenario:
    return Scenario(database)


@pytest.fixture
def former_server(scenario: Scenario) -> str:
    """Return a server that had the profile, which is disabled now."""
    server = str(uuid4())
    scenario.bind(scenario.create(), server)
    scenario.release(server)
    scenario.enable(False)
    return server


def test_delete_arqs_before_claim_records_no_former_server(scenario: Scenario) -> None:
    scenario.release(str(uuid4()))
    uuids, server = scenario.create(), str(uuid4())
    binding_by_arq = bindings(uuids, scenario.card, server)
    new = NewJob(OperationKind.BIND)
    scenario.database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, new, OWNER
    )
    scenario.release(server)
    assert scenario.count_former_servers() == 0


def test_accept_bind_arqs_created_before_disable_succeeds(scenario: Scenario) -> None:
    uuids = scenario.create()
    scenario.enable(False)
    scenario.bind(uuids, str(uuid4()))
    assert states(scenario.database, uuids) == ['Bound'] * 2


def test_delete_profile_deletes_former_servers(
    scenario: Scenario, former_server: str
) -> None:
    scenario.database.write(profiles.delete_profiles, [scenario.profile])
    assert scenario.count_former_servers() == 0


def test_bind_enabled_profile_does_not_query_former_servers(scenario: Scenario) -> None:
    with statements(scenario.database) as sql:
        scenario.bind(scenario.create(), str(uuid4()))
    assert not [text for text in sql if 'former_servers' in text]
