# SPDX-License-Identifier: Apache-2.0
"""Choice of alternatives by the capacity of Placement, and its correction by a bind."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.arqs.binding import BindHandler, build_bind_job
from cyborg_lite.conductor.profiles.device_profiles import AlternativeService
from cyborg_lite.db.arqs import arqs, binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.arqs.arqs import Arq, Scope
from cyborg_lite.model.profiles.device_profiles import Group, GroupRequirements
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.alternatives import LARGE, NIC, SHARED, SMALL, create_profile
from tests.builders.bind_rules import RULES
from tests.builders.rows import OWNER, PROJECT, add_card, bindings
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers
from tests.support.sql_statements import statements

USER = RequestContext(project_id=PROJECT)


@dataclass
class Capacity(Placement):
    """A Placement that has capacity for some groups."""

    groups: list[dict[str, str]]
    error: Exception | None = None
    queries: list[Any] = field(default_factory=list)

    def has_candidates(self, groups: Sequence[GroupRequirements]) -> bool:
        self.queries.append(groups)
        if self.error is not None:
            raise self.error
        free = [Group.parse(group).requirements for group in self.groups]
        return all(group in free for group in groups)


@pytest.mark.parametrize(
    ('free', 'choice', 'queries'),
    [
        ([LARGE, SMALL, NIC], (0, 0), 1),
        ([SMALL, NIC, SHARED], (1, 0), 2),
        ([SHARED, NIC], (2, 0), 3),
        ([SHARED], (0, 0), 3),
    ],
)
def test_choose_returns_first_choice_that_fits(
    database: Database, free: list[dict[str, str]], choice: Any, queries: int
) -> None:
    placement = Capacity(free)
    service = AlternativeService(database, placement, 60)
    uuid = create_profile(database, (LARGE, SMALL, SHARED), (NIC,)).uuid
    assert service.choose(USER, uuid) == choice
    assert len(placement.queries) == queries


@pytest.mark.parametrize(
    'error',
    [
        ServiceUnavailable(what='Placement'),
        RemoteError(service='Placement', status=500, reason='x'),
    ],
)
def test_choose_first_if_placement_fails(database: Database, error: Exception) -> None:
    placement = Capacity([SMALL], error)
    service = AlternativeService(database, placement, 60)
    uuid = create_profile(database, (LARGE, SMALL)).uuid
    assert service.choose(USER, uuid) == (0,)
    # Placement gets a pause.
    assert service.choose(USER, uuid) == (0,)
    assert len(placement.queries) == 1


def test_choose_again_costs_one_select(database: Database) -> None:
    placement = Capacity([SMALL])
    uuid = create_profile(database, (LARGE, SMALL)).uuid
    assert AlternativeService(database, placement, 60).choose(USER, uuid) == (1,)
    placement.groups = [LARGE]
    second_service = AlternativeService(database, placement, 60)
    with statements(database) as sql:
        assert second_service.choose(USER, uuid) == (1,)
    assert len(sql) == 1
    assert len(placement.queries) == 2
    assert AlternativeService(database, placement, 0).choose(USER, uuid) == (0,)


def test_choose_unknown_profile_raises(database: Database) -> None:
    service = AlternativeService(database, Capacity([]), 60)
    with pytest.raises(DeviceProfileNotFound):
        service.choose(USER, str(uuid4()))


def run_bind(
    database: Database, consumers: FakeConsumers, card: str, profile: str
) -> Arq:
    """Create and bind the ARQ of a profile on a card; return it."""
    (arq,) = database.write(arqs.create_arqs, profile, PROJECT)
    requested = bindings([arq.uuid], card)
    instance = requested[arq.uuid].instance_uuid
    consumers.allocate(instance, [card], PROJECT)
    new_job = build_bind_job(requested, RULES, 'req-1')
    accepted = requested, Scope(None), new_job, OWNER
    job = database.write(binding.accept_bind, *accepted)
    BindHandler(database, FakeAgents(), consumers, RULES).run(job)
    (bound,) = database.read(
        arqs.list_arqs, Query(filters={'uuid': (arq.uuid,)}), Scope(None)
    )
    return bound


def test_bind_corrects_alternative(database: Database) -> None:
    consumers = FakeConsumers()
    card = add_card(database, 2)
    profile = create_profile(database, (SHARED, LARGE, SMALL)).name
    consumers.traits[card] = frozenset({'CUSTOM_SMALL'})
    bound = run_bind(database, consumers, card, profile)
    assert (bound.state, bound.alternative) == ('Bound', 2)
    assert bound.device_profile_group == SMALL
    consumers.traits[card] = frozenset({'CUSTOM_LARGE'})
    assert run_bind(database, consumers, card, profile).alternative == 1


def test_bind_fails_if_allocation_is_no_alternative(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    consumers = FakeConsumers()
    card = add_card(database, 1)
    profile = create_profile(database, (LARGE, SMALL)).name
    bound = run_bind(database, consumers, card, profile)
    assert bound.state == 'BindFailed'
    assert bound.error_code == 'cyborg_lite.arq.provider_mismatch'
    assert 'matches no alternative of group 0' in caplog.text
