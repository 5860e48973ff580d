# SPDX-License-Identifier: Apache-2.0
"""Concurrent transactions on each database: one succeeds, no handle is lost."""

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from uuid import uuid4

from cyborg_lite.conductor.arqs.binding import BindHandler, build_bind_job
from cyborg_lite.db.arqs import release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import now
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.arqs import ArqStateConflict, HandlesContended, InstanceHasArqs
from cyborg_lite.errors.profiles import DeviceProfileExists
from cyborg_lite.model.jobs import Job, NewJob, Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT, accept_bind, claim_for_bind
from tests.builders.bind_rules import RULES
from tests.builders.rows import OWNER, add_arqs, add_card, bindings, owners, states
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers
from tests.support.concurrent_calls import run_at_once
from tests.support.sql_statements import statements

# 200 rounds take more than a minute on each database.
ROUNDS = int(os.environ.get('CYBORG_LITE_TEST_RACE_ROUNDS', '200'))
_MAX_ATTEMPTS = 10


@dataclass
class Binder:
    """Conductor that binds one ARQ for each of many instances, without allocations.

    Placement would not allocate more units than there are.
    """

    database: Database
    card: str

    def __post_init__(self) -> None:
        rules = replace(RULES, require_allocation=False)
        agents, consumers = FakeAgents(), FakeConsumers()
        self._handler = BindHandler(self.database, agents, consumers, rules)

    def bind(self, uuid: str) -> str:
        requested = bindings([uuid], self.card)
        new_job = build_bind_job(requested, RULES, None)
        job = accept_bind(self.database, requested, new_job)
        for _ in range(_MAX_ATTEMPTS):
            with suppress(HandlesContended):  # the conductor would postpone the job
                event_job = self._handler.run(job)
                assert event_job is not None
                return 'Bound' if event_job.payload['succeeded'] else 'BindFailed'
        return 'timed out'


def accept(database: Database, uuids: list[str], card: str, instance: str) -> str:
    return accept_bind(database, bindings(uuids, card, instance)).type


def claim(database: Database, job: Job, uuids: list[str]) -> int:
    return len(claim_for_bind(database, job, uuids).handles)


def delete_arqs(database: Database, uuids: list[str]) -> int:
    """Delete ARQs and return the number of missing ARQs."""
    return len(database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None))


def test_bind_concurrent_each_handle_is_claimed_once(database: Database) -> None:
    card = add_card(database, 16)
    binder = Binder(database, card)
    for _ in range(ROUNDS):
        uuids = add_arqs(database, 32)
        with statements(database) as sql:
            results = run_at_once([partial(binder.bind, uuid) for uuid in uuids])
        assert Counter(results) == {'Bound': 16, 'BindFailed': 16}
        # A single bind needs twelve statements.
        assert len(sql) <= 32 * 24, 'too many retries'
        outcomes = zip(uuids, results, strict=True)
        assert owners(database) == sorted(u for u, end in outcomes if end == 'Bound')
        assert delete_arqs(database, uuids) == 0
        assert owners(database) == []


def test_accept_bind_concurrent_one_set_per_instance(database: Database) -> None:
    card = add_card(database, 1)
    for _ in range(10):
        instance = str(uuid4())
        sets = [add_arqs(database, 2), add_arqs(database, 2)]
        binds = [partial(accept, database, uuids, card, instance) for uuids in sets]
        results = run_at_once(binds)
        assert Counter(results) == {OperationKind.BIND: 1, InstanceHasArqs: 1}
        loser = sets[results.index(InstanceHasArqs)]
        assert states(database, loser) == ['Initial', 'Initial']


def test_accept_bind_concurrent_one_instance_per_arq(database: Database) -> None:
    card = add_card(database, 1)
    for _ in range(10):
        uuids = add_arqs(database, 1)
        bind = partial(accept, database, uuids, card)
        results = run_at_once([partial(bind, str(uuid4())) for _ in range(2)])
        assert Counter(results) == {OperationKind.BIND: 1, ArqStateConflict: 1}


def test_delete_during_claim_leaves_no_handle(database: Database) -> None:
    card = add_card(database, 2)
    for _ in range(10):
        uuids = add_arqs(database, 2)
        job = accept_bind(database, bindings(uuids, card))
        delete = partial(delete_arqs, database, uuids)
        run_at_once([partial(claim, database, job, uuids), delete])
        assert states(database, uuids) == []
        assert owners(database) == []


def test_delete_concurrent_deletes_once(database: Database) -> None:
    for _ in range(10):
        uuids = add_arqs(database, 2)
        results = run_at_once([partial(delete_arqs, database, uuids)] * 2)
        assert Counter(results) == {0: 1, 2: 1}
        assert states(database, uuids) == []


def test_lease_jobs_concurrent_each_job_leased_once(database: Database) -> None:
    for _ in range(40):
        database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    runners = [Owner(f'conductor:{number}', 30_000) for number in range(8)]

    def lease_all_jobs(owner: Owner) -> list[str]:
        leased: list[str] = []
        while jobs := database.write(queue.lease_jobs, owner, 3):
            leased += [job.uuid for job in jobs]
        return leased

    results = run_at_once([partial(lease_all_jobs, owner) for owner in runners])
    uuids = [uuid for leased in results for uuid in leased]  # type: ignore[union-attr]  # none raised
    assert len(uuids) == len(set(uuids)) == 40


def test_add_job_concurrent_same_key_writes_one_row(database: Database) -> None:
    sync = NewJob(OperationKind.RECONCILE, key='compute-1')
    run_at_once([partial(database.write, queue.add_job, sync)] * 8)
    assert len(database.write(queue.lease_jobs, OWNER, 10)) == 1


def build_profile(name: str) -> DeviceProfile:
    groups = ({'resources:PGPU': '1'},)
    return DeviceProfile(str(uuid4()), name, None, groups, now())


def test_create_profile_concurrent_same_name_one_succeeds(database: Database) -> None:
    creations = [
        partial(database.write, profiles.create_profile, build_profile('a'))
        for _ in range(6)
    ]
    assert run_at_once(creations).count(DeviceProfileExists) == 5
    assert len(database.read(profiles.list_profiles, Query())) == 1


def test_grant_access_concurrent_all_succeed(database: Database) -> None:
    uuid = database.write(profiles.create_profile, build_profile('a')).uuid
    grant = partial(database.write, profiles.grant_access, uuid, ['lab'], None)
    assert run_at_once([grant] * 4) == [None] * 4
    assert database.read(profiles.list_projects, uuid, Query(), None) == ('lab',)
