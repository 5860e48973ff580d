# SPDX-License-Identifier: Apache-2.0
"""Correction of the alternatives of ARQs."""

from uuid import uuid4

from sqlalchemy import select

from cyborg_lite.db.arqs import alternatives, arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.model.arqs.arqs import Binding
from cyborg_lite.model.jobs import read_bind_generation
from tests.builders.alternatives import LARGE, NIC, SHARED, SMALL, create_profile
from tests.builders.bind_jobs import accept_bind
from tests.builders.rows import HOST, PROJECT

CARD, PORT = str(uuid4()), str(uuid4())
CHOICES = (
    ('CUSTOM_SMALL', 'PGPU', 1, SMALL),
    ('', 'VGPU', 2, SHARED),
    ('CUSTOM_LARGE', 'PGPU', 0, LARGE),
)


def test_correct_alternatives_stores_group_of_allocation(database: Database) -> None:
    name = create_profile(database, (LARGE, SMALL, SHARED), (NIC,)).name
    uuids = [arq.uuid for arq in database.write(arqs.create_arqs, name, PROJECT)]
    instance = str(uuid4())
    requested = {
        uuid: Binding(HOST, provider, instance)
        for uuid, provider in zip(uuids, (CARD, PORT), strict=True)
    }
    generation = read_bind_generation(accept_bind(database, requested).payload)
    columns = Arq.alternative, Arq.resource_class, Arq.device_profile_group
    statement = select(*columns).order_by(Arq.id)
    for trait, resource_class, number, group in CHOICES:
        corrected = database.write(
            alternatives.correct_alternatives,
            uuids,
            generation,
            {CARD: {resource_class: 1}, PORT: {'CUSTOM_NIC': 1}},
            {CARD: frozenset({trait} - {''})},
        )
        assert corrected == {0: number}
        rows = database.read(lambda session: session.execute(statement).all())
        chosen = number, resource_class, group
        assert rows == [chosen, (0, 'CUSTOM_NIC', NIC)]
