# SPDX-License-Identifier: Apache-2.0
"""History of ARQs: the steps that other modules store in their transactions.

The history outlives the ARQ. The creation has no row; its time is that of the ARQ.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from sqlalchemy import (
    String,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
)
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.arqs.arqs import scope_filter
from cyborg_lite.db.core.change import change, delete_some
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.query import Collection, list_page
from cyborg_lite.db.core.records import AnyRow, Record
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.core.tables import ArqEvent as Row
from cyborg_lite.db.jobs import outbox
from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.registry import find_code
from cyborg_lite.model.arqs.arqs import Actor, Scope, State, Step
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.model.operations import Operation, OperationKind
from cyborg_lite.model.queries import LATEST_FIRST, Page, Query, replace_records

BIND_REFUSED: Final = 'BindRefused'
"""Step of an ARQ whose bind was not accepted. The state is the same as before."""

BIND_DELAYED: Final = 'BindDelayed'
"""Step of an ARQ whose bind waits for a host or a service that does not answer."""

MAX_STEPS: Final = 500  # of the history of one ARQ
_MAX_ARQS: Final = 100  # per transaction

_TEXTS: Final = ('step', 'actor', 'reason', 'error_code')
_STEPS: Final = select(
    Arq.uuid,
    Arq.project_id,
    func.coalesce(bindparam('instance', type_=String), Arq.instance_uuid),
    *(bindparam(name, type_=String) for name in _TEXTS),
    now_utc(),
).where(Arq.uuid.in_(bindparam('uuids')))
_COLUMNS: Final = ('arq_uuid', 'project_id', 'instance_uuid', *_TEXTS, 'at')
_INSERT: Final = insert(Row).from_select(_COLUMNS, _STEPS)

RELEASED: Final = 'Released'
RELEASE_FAILED: Final = 'ReleaseFailed'

_OF_ARQS: Final = (OperationKind.BIND, OperationKind.RELEASE)
_OF_RELEASES: Final = (State.UNBOUND, State.DELETING, RELEASED, RELEASE_FAILED)

NO_FAILURE: Final = {'status_reason': None, 'error_code': None}
"""Columns of an ARQ whose last bind or release has not failed."""


def describe_failure(error: CyborgError) -> dict[str, str]:
    """Return the columns of an ARQ whose bind or release has failed."""
    reason = error.text[:REASON_MAX_LENGTH]
    return {'status_reason': reason, 'error_code': find_code(type(error))}


def record_step(
    session: Session,
    uuids: Iterable[str],
    step: str,
    actor: Actor,
    error: CyborgError | None = None,
) -> None:
    """Store the same step for all ARQs ``uuids``, in at most one statement.

    :param error: None: the step is no failure
    """
    if stepping := list(uuids):
        change(session, _INSERT, _build_values(stepping, step, actor, error))
        outbox.add_step(session, stepping, step)


def record_refused_bind(
    session: Session,
    uuids: Iterable[str],
    scope: Scope,
    instance: str,
    error: CyborgError,
) -> None:
    """Store that the bind of ARQs to an instance was refused.

    Unknown ARQs, and those out of scope, have no history to write to.
    """
    steps = _STEPS.where(scope_filter(scope))
    values = _build_values(list(uuids), BIND_REFUSED, Actor.CONDUCTOR, error)
    refused = insert(Row).from_select(_COLUMNS, steps)
    change(session, refused, {**values, 'instance': instance})


def _build_values(
    uuids: Sequence[str], step: str, actor: Actor, error: CyborgError | None
) -> dict[str, object]:
    failure = describe_failure(error) if error else NO_FAILURE
    return {
        'uuids': uuids,
        'instance': None,
        'step': step,
        'actor': actor,
        'reason': failure['status_reason'],
        'error_code': failure['error_code'],
    }


# --- what clients read ---

_later = aliased(Row)
_END: Final = (
    select(func.min(_later.at))
    .where(_later.arq_uuid == Row.arq_uuid, _later.id > Row.id)
    .correlate(Row)
    .scalar_subquery()
)
_STEP: Final = Record(Step, Row, ended_at=_END)
_HISTORY: Final = Collection(Row, filters={})


def list_steps(
    session: Session, uuid: str, scope: Scope, query: Query = LATEST_FIRST
) -> tuple[Step, ...]:
    """Return a page of the steps of an ARQ; the last one is the creation.

    The history of a deleted ARQ, without its creation, can be read until it is purged.

    :param query: must be ``descending``
    :raises ArqNotFound: neither the ARQ nor its history exists, or it is out of scope
    """
    collection = replace(
        _HISTORY, visible=and_(Row.arq_uuid == uuid, scope_filter(scope, Row))
    )
    steps = list_page(session, _STEP.select(), query, collection, _STEP.read)
    if isinstance(steps, Page) and steps.cursor is not None:
        return steps
    created = _read_creation(session, uuid, scope)
    if not steps and not created and query.cursor is None:
        raise ArqNotFound(uuid=uuid)
    return replace_records(steps, (*steps, *created))


def _read_creation(session: Session, uuid: str, scope: Scope) -> tuple[Step, ...]:
    """Return the first step of an ARQ; empty: it is deleted or out of scope."""
    first = select(func.min(Row.at)).where(Row.arq_uuid == uuid).scalar_subquery()
    statement = select(Arq.created_at, first.label('ended_at'))
    rows = session.execute(statement.where(Arq.uuid == uuid, scope_filter(scope)))
    return tuple(
        Step(
            State.INITIAL,
            Actor.CLIENT,
            at=row.created_at,
            ended_at=row.ended_at,
            arq_uuid=uuid,
        )
        for row in rows
    )


def list_steps_of_instance(
    session: Session, instance: str, scope: Scope, query: Query = LATEST_FIRST
) -> tuple[Step, ...]:
    """Return a page of the steps of the ARQs that an instance has or had.

    An ARQ has no instance while it is released. These steps belong to the histories of
    all its instances.
    """
    arqs = select(Row.arq_uuid).where(Row.instance_uuid == instance)
    is_released = and_(Row.instance_uuid.is_(None), Row.arq_uuid.in_(arqs))
    of_instance = or_(Row.instance_uuid == instance, is_released)
    visible = and_(of_instance, scope_filter(scope, Row))
    collection = replace(_HISTORY, visible=visible)
    return list_page(session, _STEP.select(), query, collection, _STEP.read)


def add_steps(
    session: Session, operations: tuple[Operation, ...]
) -> tuple[Operation, ...]:
    """Return operations; the steps of a bind or release are those of its ARQs.

    One SELECT reads the steps of all operations.
    """
    binds = [item for item in operations if item.kind in _OF_ARQS]
    if not binds:
        return operations
    arqs = {uuid for item in binds for uuid in item.list_arqs()}
    first = min(item.created_at for item in binds)
    columns = Row.arq_uuid, Row.step, Row.reason, Row.error_code, Row.at
    is_step = Row.arq_uuid.in_(arqs), Row.at >= first
    steps = session.execute(select(*columns).where(*is_step).order_by(Row.id)).all()
    changed = [
        replace(item, steps=_select_steps(item, steps)) if item in binds else item
        for item in operations
    ]
    return replace_records(operations, changed)


def _select_steps(
    operation: Operation, rows: Sequence[AnyRow]
) -> tuple[Mapping[str, str], ...]:
    """Return the steps of an operation; a step of several ARQs stands once."""
    arqs, start, end = operation.list_arqs(), operation.created_at, operation.ended_at
    is_release = operation.kind == OperationKind.RELEASE
    steps: dict[tuple[str, str | None], dict[str, str]] = {}
    for row in rows:
        is_within = row.at >= start and (end is None or row.at <= end)
        is_own = row.arq_uuid in arqs and (row.step in _OF_RELEASES) is is_release
        if is_within and is_own:
            step = {'name': row.step, 'at': row.at.isoformat()}
            texts = {'reason': row.reason or '', 'error_code': row.error_code or ''}
            steps.setdefault((row.step, row.reason), step | texts)
    return tuple(steps.values())


# --- deletion ---


def delete_old_histories(session: Session, before: datetime) -> int:
    """Delete the histories of deleted ARQs whose last step is older than a time.

    The latest step of all stays, because the mark of the database must not fall; see
    model/hosts/incarnations.py.
    """
    later = aliased(Row)
    has_later = exists().where(later.arq_uuid == Row.arq_uuid, later.at >= before)
    has_arq = exists().where(Arq.uuid == Row.arq_uuid)
    is_latest = Row.id == select(func.max(later.id)).scalar_subquery()
    is_old = Row.at < before
    return delete_some(session, Row, is_old, ~has_arq, ~has_later, ~is_latest)


def list_long_histories(session: Session) -> Sequence[str]:
    """Return ARQs with more than ``MAX_STEPS`` steps; at most 100 of them."""
    long = (
        select(Row.arq_uuid)
        .group_by(Row.arq_uuid)
        .having(func.count() > MAX_STEPS)
        .limit(_MAX_ARQS)
    )
    return session.scalars(long).all()


def shorten_history(session: Session, arq_uuid: str) -> int:
    """Delete all but the newest steps of an ARQ; return the number of deleted steps."""
    of_arq = Row.arq_uuid == arq_uuid
    newest = select(Row.id).where(of_arq).order_by(Row.id.desc())
    last = session.scalar(newest.offset(MAX_STEPS).limit(1))
    if last is None:
        return 0
    return change(session, delete(Row).where(of_arq, Row.id <= last))
