# SPDX-License-Identifier: Apache-2.0
"""Deletions at the same time as binds and as other deletions, on each database."""

from functools import partial
from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.arqs import BindCancelled, HandlesContended, NoFreeHandle
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.errors.hosts import HostInUse
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.jobs import Job
from tests.builders.bind_jobs import (
    ANY_PROJECT,
    FAILED_EVENT_JOB,
    accept_bind,
    claim_for_bind,
    complete_bind,
)
from tests.builders.rows import (
    HOST,
    add_arqs,
    add_card,
    add_profile,
    bindings,
    owners,
    states,
)
from tests.builders.service_rows import mark_down
from tests.support.concurrent_calls import run_at_once

FAILURE = DriverError(reason='no handle')
_ROUNDS = 40
_MAX_ATTEMPTS = 20


def claim_and_end(database: Database, job: Job, uuids: list[str]) -> str:
    """Claim the handles, and complete the bind or fail it as its job does."""
    try:
        claimed = claim_for_bind(database, job, uuids)
        complete_bind(database, claimed.job, uuids)
    except BindCancelled:
        database.write(binding.fail_bind, job, uuids, FAILURE, FAILED_EVENT_JOB)
        return 'cancelled'
    return 'bound'


def delete_of_instance(database: Database, instance: str) -> str:
    database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
    return 'deleted'


@pytest.mark.parametrize('needs_host', [True, False])
def test_delete_of_instance_during_claim_succeeds(
    database: Database, needs_host: bool
) -> None:
    card = add_card(database, 2 * _ROUNDS, needs_host=needs_host)
    for _ in range(_ROUNDS):
        uuids, instance = add_arqs(database, 2), str(uuid4())
        job = accept_bind(database, bindings(uuids, card, instance))
        bind = partial(claim_and_end, database, job, uuids)
        delete = partial(delete_of_instance, database, instance)
        bound, deleted = run_at_once([bind, delete])
        assert deleted == 'deleted'
        assert bound in ('bound', 'cancelled')
        assert set(states(database, uuids)) <= {'Deleting'}


def test_delete_profile_concurrently_succeeds_once(database: Database) -> None:
    for _ in range(10):
        name = add_profile(database, [{'resources:PGPU': '1'}])
        delete = partial(database.write, profiles.delete_profiles, [name])
        results = run_at_once([delete] * 4)
        assert results.count(None) == 1
        assert results.count(DeviceProfileNotFound) == 3


def bind(database: Database, uuids: list[str], card: str) -> str:
    """Bind ARQs of a new instance; return the final state."""
    job = accept_bind(database, bindings(uuids, card))
    for _ in range(_MAX_ATTEMPTS):
        try:
            return claim_and_end(database, job, uuids)
        except NoFreeHandle:
            database.write(binding.fail_bind, job, uuids, FAILURE, FAILED_EVENT_JOB)
            return 'failed'
        except HandlesContended:  # the conductor would postpone the job
            continue
    return 'timed out'


def test_forget_host_during_bind_one_fails(database: Database) -> None:
    for _ in range(15):
        card = add_card(database, 4, needs_host=True)
        mark_down(database, HOST)
        binds = [partial(bind, database, add_arqs(database, 2), card) for _ in range(2)]
        forget = partial(forget_host, database)
        first, second, removed = run_at_once([*binds, forget])
        if removed == 'removed':
            assert (first, second) == ('failed', 'failed')
        else:
            assert removed is HostInUse
            assert 'bound' in map(str, (first, second))
            _remove_host(database)
        assert owners(database) == []


def forget_host(database: Database) -> str:
    assert len(database.write(hosts.forget_host, HOST)) == 1
    return 'removed'


def _remove_host(database: Database) -> None:
    """Delete all ARQs of the host, then the host."""
    uuids = owners(database)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    database.write(hosts.forget_host, HOST)
