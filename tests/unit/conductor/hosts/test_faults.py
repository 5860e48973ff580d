# SPDX-License-Identifier: Apache-2.0
"""Faults of daemons that a conductor notes, and their end."""

import threading
from datetime import datetime
from typing import Final

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.hosts.faults import FaultLog, count_writes
from cyborg_lite.db.attention import list_attention
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Fault
from cyborg_lite.model.attention import AttentionKind
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, SecretKeys, derive_key
from cyborg_lite.rpc.security.signing import KEY, Signer
from tests.builders.rows import add_profile
from tests.doubles.agents import FakeAgents

AGENT: Final = Peer(Role.AGENT, 'compute-1')
SECRETS: Final = 'former secret', 'new secret'


@pytest.fixture
def agents() -> FakeAgents:
    return FakeAgents()


@pytest.fixture
def faults(database: Database, agents: FakeAgents) -> FaultLog:
    log = FaultLog(database, 100.0, threading.Event())
    log.agents = agents
    return log


def list_commands(database: Database) -> list[tuple[str, str, str]]:
    items = database.read(list_attention)
    return [(item.kind, item.hostname, item.command) for item in items]


def send(signer: Signer, conductor: Signer) -> None:
    request = signer.sign(Peer(Role.CONDUCTOR), 'echo', {}, {}, {})
    conductor.verify('echo', {KEY: request.proof}, {})


def test_former_key_is_fault_until_replaced(
    database: Database, faults: FaultLog
) -> None:
    conductor = Signer(Peer(Role.CONDUCTOR), SecretKeys(SECRETS))
    conductor.note_key = faults.note_key
    former, new = (
        Signer(peer, OwnKeys(peer, (derive_key(secret, peer),)))
        for secret in SECRETS
        for peer in [AGENT]
    )
    send(former, conductor)
    send(Signer(Peer(Role.API), SecretKeys(SECRETS)), conductor)
    faults.write()
    assert sorted(list_commands(database)) == [
        ('outdated_key', '', 'cyborg-lite-manage agent api-key'),
        ('outdated_key', 'compute-1', 'cyborg-lite-manage agent key compute-1'),
    ]
    send(new, conductor)
    faults.write()
    assert [host for _, host, _ in list_commands(database)] == ['']


def test_profile_without_device_is_known_since_first_note(
    database: Database, faults: FaultLog
) -> None:
    add_profile(database, [{'resources:PGPU': '1'}])
    assert list_times(database) == [None]
    for _ in range(2):
        faults.note_profiles()
        faults.write()
    ((since, last_note),) = database.read(_list_fault_times)
    assert list_times(database) == [since]
    assert since < last_note


def list_times(database: Database) -> list[datetime | None]:
    return [item.since for item in database.read(list_attention)]


def _list_fault_times(session: Session) -> list[tuple[datetime, datetime]]:
    rows = session.execute(select(Fault.since, Fault.seen_at))
    return [(row.since, row.seen_at) for row in rows]


def test_fault_keeps_age_while_all_conductors_are_stopped(
    database: Database, faults: FaultLog
) -> None:
    faults.note_duplicate('compute-1', 'Two agents.')
    faults.write()
    before = list_times(database)
    long_ago = update(Fault).values(seen_at=datetime(2020, 1, 1))
    database.write(lambda session: session.execute(long_ago))
    faults.note_duplicate('compute-1', 'Two agents.')
    faults.write()
    assert list_times(database) == before


def test_profiles_are_checked_before_their_faults_end() -> None:
    assert [count_writes(lifetime) for lifetime in (100.0, 12.0, 1.0)] == [15, 2, 1]


def test_fault_that_is_not_repeated_ends(database: Database, faults: FaultLog) -> None:
    faults.note_refusal('wrong signature', 'agent:compute-1')
    faults.note_refusal('repeated', 'agent:compute-2')
    faults.note_refusal('wrong signature', 'an unknown sender')
    faults.write()
    command = 'systemctl status cyborg-lite-agent'
    assert list_commands(database) == [('not_ready', 'compute-1', command)]
    FaultLog(database, -1.0, threading.Event()).write()
    assert list_commands(database) == []


def test_duplicate_agent_is_told_to_first_once(
    database: Database, faults: FaultLog, agents: FakeAgents
) -> None:
    for _ in range(3):
        faults.note_duplicate('compute-1', 'Two agents.')
        faults.write()
    assert agents.calls == [('warn', 'compute-1', 0)]
    ((kind, host, _),) = list_commands(database)
    assert (kind, host) == (AttentionKind.DUPLICATE_AGENT, 'compute-1')
