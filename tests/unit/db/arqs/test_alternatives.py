# SPDX-License-Identifier: Apache-2.0
"""Correction of the alternatives of ARQs."""

from dataclasses import dataclass
from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite import codec
from cyborg_lite.db.arqs import alternatives, arqs, binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.jobs.payloads import read_payload
from cyborg_lite.model.arqs.arqs import Binding, Scope
from cyborg_lite.model.jobs import BindPayload, Job, NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.alternatives import LARGE, NIC, SHARED, SMALL, create_profile
from tests.builders.rows import HOST, OWNER, PROJECT

CARD, PORT = str(uuid4()), str(uuid4())


@dataclass
class Instance:
    """An instance whose bind has been accepted."""

    database: Database
    uuids: list[str]
    job: Job

    def correct(self, **traits: str) -> dict[int, int | None]:
        """Correct with an allocation of a class on the card and of a NIC."""
        payload = read_payload(BindPayload, self.job.payload)
        amounts = {'PGPU': 1} if 'trait' in traits else {'VGPU': 1}
        return self.database.write(
            alternatives.correct_alternatives,
            self.uuids,
            payload.generation,
            {CARD: amounts, PORT: {'CUSTOM_NIC': 1}},
            {CARD: frozenset(traits.values())},
        )

    def read(self) -> list[tuple[int, str, dict[str, str]]]:
        return self.database.read(_read, self.uuids)


def _read(session: Session, uuids: list[str]) -> list[tuple[int, str, dict[str, str]]]:
    rows = session.scalars(select(Arq).where(Arq.uuid.in_(uuids)).order_by(Arq.id))
    return [
        (row.alternative, row.resource_class or '', row.device_profile_group)
        for row in rows
    ]


def accept(database: Database, *options: tuple[dict[str, str], ...]) -> Instance:
    name = create_profile(database, *options).name
    created = database.write(arqs.create_arqs, name, PROJECT)
    instance = str(uuid4())
    requested = {
        arq.uuid: Binding(HOST, PORT if arq.device_profile_group_id else CARD, instance)
        for arq in created
    }
    payload = codec.dump(BindPayload(instance, tuple(requested), (CARD, PORT)))
    new_job = NewJob(OperationKind.BIND, payload)
    accepted = requested, Scope(None), new_job, OWNER
    job = database.write(binding.accept_bind, *accepted)
    return Instance(database, [arq.uuid for arq in created], job)


def test_accept_bind_marks_job_with_alternatives(database: Database) -> None:
    with_others = accept(database, (LARGE, SMALL)).job.payload
    assert read_payload(BindPayload, with_others).has_alternatives
    without = accept(database, (LARGE,)).job.payload
    assert not read_payload(BindPayload, without).has_alternatives


def test_correct_alternatives_stores_group_of_allocation(database: Database) -> None:
    instance = accept(database, (LARGE, SMALL, SHARED), (NIC,))
    assert instance.correct(trait='CUSTOM_SMALL') == {0: 1}
    assert instance.read() == [(1, 'PGPU', SMALL), (0, 'CUSTOM_NIC', NIC)]
    assert instance.correct() == {0: 2}
    assert instance.read()[0] == (2, 'VGPU', SHARED)
    assert instance.correct(trait='CUSTOM_LARGE') == {0: 0}
    assert instance.read()[0] == (0, 'PGPU', LARGE)


def test_correct_alternatives_unknown_allocation_changes_nothing(
    database: Database,
) -> None:
    instance = accept(database, (LARGE, SMALL))
    before = instance.read()
    assert instance.correct() == {0: None}
    assert instance.read() == before
