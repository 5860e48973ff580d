# SPDX-License-Identifier: Apache-2.0
"""History of an instance whose bind failed, on each database: read, kept, deleted."""

import threading
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy.orm import Session

from cyborg_lite.conductor.jobs.purging import Purger
from cyborg_lite.db.arqs import binding
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.drivers import DriverError
from tests.builders.bind_jobs import FAILED_EVENT_JOB, accept_bind
from tests.builders.rows import add_arqs, add_card, bindings
from tests.doubles.placement import FakePlacement
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import ADMIN, MEMBER, NOVA, OTHER_MEMBER, Client
from tests.support.api.patches import build_bind

SECRET = 'compute-1 /sys/bus/pci/devices/0000:3b:00.0/reset'


@pytest.fixture
def nova(database: Database) -> Client:
    return Client(LocalConductor(database), headers=NOVA, version='2.7')


def fail_bind(database: Database, uuids: list[str], instance: str) -> None:
    """Have the bind of ARQs to an instance fail with the secret in the reason."""
    job = accept_bind(database, bindings(uuids, add_card(database, 2), instance))
    error = DriverError(reason=SECRET)
    database.write(binding.fail_bind, job, uuids, error, FAILED_EVENT_JOB)


def list_steps(client: Client, instance: str) -> list[dict[str, Any]]:
    """Return the steps of an instance, read in pages of two."""
    path = f'/instance_events?limit=2&instance={instance}'
    steps: list[dict[str, Any]] = []
    while path:
        answer = client.get(path)
        assert answer.status == 200
        assert len(answer.json['events']) <= 2
        steps += answer.json['events']
        links = answer.json.get('events_links', [])
        path = links[0]['href'].rpartition('/v2')[2] if links else ''
    return steps


def test_history_of_instance_outlives_arqs_until_retention(
    database: Database, nova: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = str(uuid4())
    uuids, (living,) = add_arqs(database, 2), add_arqs(database, 1)
    fail_bind(database, uuids, instance)
    refused = nova.patch('/accelerator_requests', {uuids[0]: build_bind(instance)})
    assert refused.status == 409
    assert nova.delete(f'/accelerator_requests?instance={instance}').status == 204
    assert nova.get(f'/accelerator_requests?instance={instance}').json['arqs'] == []

    steps = list_steps(nova.as_(MEMBER), instance)
    assert [(step['step'], step['arq_uuid'] in uuids) for step in steps] == [
        ('BindRefused', True),
        *[('BindFailed', True)] * 2,
        *[('BindStarted', True)] * 2,
    ]
    assert all(step['reason'] and step['error_code'] for step in steps[:3])
    assert SECRET not in str(steps)
    assert SECRET in str(list_steps(nova.as_(ADMIN), instance))
    assert list_steps(nova.as_(OTHER_MEMBER), instance) == []
    path = f'/accelerator_requests/{uuids[0]}/events'
    assert nova.as_(OTHER_MEMBER).get(path).status == 404
    assert len(nova.as_(MEMBER).get(path).json['events']) == 3

    read_time_before = clock.read_time_before
    purger = Purger(database, FakePlacement(), threading.Event())
    fail_bind(database, [living], str(uuid4()))
    for days, number in ((29, 5), (31, 0)):

        def read_later(session: Session, seconds: float, days: int = days) -> datetime:
            return read_time_before(session, seconds) + timedelta(days=days)

        monkeypatch.setattr(clock, 'read_time_before', read_later)
        purger.purge()
        assert len(list_steps(nova.as_(MEMBER), instance)) == number
    assert nova.as_(MEMBER).get(path).status == 404
    path = f'/accelerator_requests/{living}/events'
    assert len(nova.as_(MEMBER).get(path).json['events']) == 3
