# SPDX-License-Identifier: Apache-2.0
"""Agents: the inventories that they reported, and the one that speaks for its host.

Only one agent at a time speaks for a host. An agent keeps its identity in its state
directory. The identity of a host changes when its agent is down, or when an operator
forgets it.
"""

from typing import Any, Final
from uuid import uuid4

from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.records import Record
from cyborg_lite.db.core.tables import Service as Row
from cyborg_lite.errors.hosts import AgentIdentityRefused
from cyborg_lite.model.hosts.services import (
    AGENT,
    AgentRecord,
    ServiceState,
    name_agent,
)

_AGENT: Final = Record(AgentRecord, Row)
_REPORT: Final = Upsert(
    Row,
    [Row.host, Row.binary],
    ['heartbeat_at', 'digest', 'boot_id'],
    computed={'started_at': now_utc(), 'heartbeat_at': now_utc()},
)


def store_digest(session: Session, host: str, digest: str, boot_id: str) -> None:
    """Store the digest of the inventory that this transaction is about to store.

    The transaction locks the row until its end, so reports of one host are stored one
    after the other.
    """
    identity = {'uuid': str(uuid4()), 'binary': AGENT, 'host': host, 'version': ''}
    _REPORT.run(session, {**identity, 'digest': digest, 'boot_id': boot_id})


def clear_digest(session: Session, host: str) -> None:
    """Make the agent send its whole inventory after its next heartbeat."""
    change(session, update(Row).where(Row.is_agent_of(host)).values(digest=None))


def store_last_event(session: Session, host: str, number: int) -> None:
    """Store the number of the last event of the host that was recorded."""
    change(session, update(Row).where(Row.is_agent_of(host)).values(last_event=number))


def find_agent(session: Session, host: str) -> AgentRecord | None:
    """Return what is stored about the agent of a host; None: nothing."""
    return _AGENT.find(session, Row.is_agent_of(host))


def accept_agent(session: Session, host: str, identity: str, machine: str = '') -> None:
    """Let an agent speak for its host, if no other agent does.

    The caller has changed the row of the agent in this transaction, which locks the
    row. A new agent must send its report.

    :param identity: empty: not known, which is accepted
    :raises AgentIdentityRefused: the host has another agent, which is up
    """
    if not identity:
        return
    agent = find_agent(session, host)
    if agent is None:
        return
    values: dict[str, Any] = {}
    if agent.identity != identity:
        if agent.refuses(identity):
            name = name_agent(agent.identity or '', agent.machine)
            raise AgentIdentityRefused(host=host, machine=name)
        values = {'identity': identity, 'machine': machine}
        values |= {'report_number': 0, 'digest': None}
    if agent.state is ServiceState.STOPPED:
        values['state'] = ServiceState.UP
    if values:
        change(session, update(Row).where(Row.is_agent_of(host)).values(values))


def forget_identity(session: Session, host: str) -> bool:
    """Let the next agent that sends a heartbeat speak for a host.

    :returns: False if the host has no agent with an identity
    """
    agent = Row.is_agent_of(host) & Row.identity.is_not(None)
    return bool(change(session, update(Row).where(agent).values(identity=None)))
