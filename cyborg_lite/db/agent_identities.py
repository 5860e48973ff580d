# SPDX-License-Identifier: Apache-2.0
"""Identities of agents: only one agent at a time speaks for a host.

An agent keeps its identity in its state directory. The identity of a host changes when
its agent is down, or when an operator forgets it.
"""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import Service as Row
from cyborg_lite.exceptions import AgentIdentityRefused
from cyborg_lite.model.services import AgentRecord, ServiceState


def find_agent(session: Session, host: str) -> AgentRecord | None:
    """Return what is stored about the agent of a host; None: nothing."""
    columns = Row.digest, Row.boot_id, Row.identity, Row.state, Row.report_number
    row = session.execute(select(*columns).where(Row.is_agent_of(host))).one_or_none()
    if row is None:
        return None
    state = ServiceState(row.state)
    return AgentRecord(row.digest, row.boot_id, row.identity, state, row.report_number)


def accept_agent(session: Session, host: str, identity: str) -> None:
    """Let an agent speak for its host, if no other agent does.

    The row exists, and this transaction has changed it, so that it is locked. A new
    agent must send its report.

    :param identity: empty: an agent of an earlier release, which is accepted
    :raises AgentIdentityRefused: the host has another agent, which is alive
    """
    if not identity:
        return
    agent = find_agent(session, host)
    if agent is None or agent.identity == identity:
        return
    if agent.refuses(identity):
        raise AgentIdentityRefused(host=host)
    values = {'identity': identity, 'report_number': 0, 'digest': None}
    change(session, update(Row).where(Row.is_agent_of(host)).values(values))


def forget_identity(session: Session, host: str) -> bool:
    """Let the next agent that sends a heartbeat speak for a host.

    :returns: False if the host has no agent with an identity
    """
    agent = Row.is_agent_of(host) & Row.identity.is_not(None)
    return bool(change(session, update(Row).where(agent).values(identity=None)))
