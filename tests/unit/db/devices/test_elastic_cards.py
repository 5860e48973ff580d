# SPDX-License-Identifier: Apache-2.0
"""Claims on an elastic card: places, and what is reserved of each size."""

import random
from collections.abc import Mapping
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import delete, select

from cyborg_lite.db.arqs import arqs, release
from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Attribute
from cyborg_lite.db.core.tables import Deployable as DeployableRow
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.inventory.reports import store_report
from cyborg_lite.db.providers.providers import list_providers_of_host
from cyborg_lite.errors.arqs import NoFreeHandle, UnitsBeingCleaned
from cyborg_lite.model.arqs.arqs import Binding
from cyborg_lite.model.capacity.carving import Size
from cyborg_lite.model.hosts.topology import Availability
from cyborg_lite.model.inventory.host_report import (
    AttachHandle as ReportedHandle,
)
from cyborg_lite.model.inventory.host_report import Deployable, HandleType
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_jobs import ANY_PROJECT, accept_bind, claim_for_bind
from tests.builders.reports import HOST, card, report
from tests.builders.rows import PROJECT, add_profile
from tests.builders.table_rows import change_rows

_PLACES = {'1G': '0,1,2,3,4,5,6:1', '2G': '0,2,4:2', '3G': '0,4:4', '7G': '0:8'}
_TOTALS = {'1G': 7, '2G': 3, '3G': 2, '7G': 1}


class ElasticCard:
    """An elastic card in a database, and the ARQs that use it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.parts = {
            name: _build_part(name, places) for name, places in _PLACES.items()
        }
        root = Deployable(f'{HOST}_0000:3b:00.0', children=tuple(self.parts.values()))
        device = replace(card(0x3B), root=root)
        database.write(store_report, report(device))

    def begin(self, *sizes: str) -> tuple[list[str], Job]:
        """Accept the bind of one instance with units of some sizes."""
        groups = [{'resources:VGPU': '1'}] * len(sizes)
        profile = add_profile(self.database, groups)
        created = self.database.write(arqs.create_arqs, profile, PROJECT)
        uuids = [arq.uuid for arq in created]
        instance = str(uuid4())
        by_arq = {
            uuid: Binding(HOST, self.provider(size), instance)
            for uuid, size in zip(uuids, sizes, strict=True)
        }
        return uuids, accept_bind(self.database, by_arq)

    def claim(self, uuids: list[str], job: Job) -> None:
        claim_for_bind(self.database, job, uuids)

    def bind(self, *sizes: str) -> list[str]:
        uuids, job = self.begin(*sizes)
        self.claim(uuids, job)
        return uuids

    def provider(self, size: str) -> str:
        return self.parts[size].provider_uuid

    def list_places(self) -> list[tuple[str, int]]:
        """Return size and place of each unit in use, sorted by place."""
        statement = (
            select(DeployableRow.name, AttachHandle.place)
            .join(DeployableRow, DeployableRow.id == AttachHandle.deployable_id)
            .where(AttachHandle.arq_uuid.is_not(None))
        )
        rows = self.database.read(lambda session: session.execute(statement).all())
        places = [(name[-2:], place) for name, place in rows if place is not None]
        return sorted(places, key=lambda item: item[1])

    def end_sync_jobs(self) -> int:
        """Delete the jobs that write to Placement; return their number."""
        jobs = delete(JobRow).where(JobRow.kind == OperationKind.RECONCILE)
        return self.database.write(change, jobs)

    def read_reserved(self) -> Mapping[str, int]:
        rows = self.database.read(list_providers_of_host, HOST)
        return {row.name[-2:]: row.reserved for row in rows}

    def read_free(self) -> Mapping[str, int]:
        rows = self.database.read(provider_capacity.list_provider_capacities)
        for row in rows:
            assert row.states.get(Availability.FREE, 0) == row.free == row.free_handles
        return {row.name[-2:]: row.free for row in rows}


def _build_part(name: str, places: str) -> Deployable:
    handles = tuple(
        ReportedHandle(f'{name}/{n}', HandleType.PCI, {'part': f'{name}{n}'})
        for n in range(_TOTALS[name])
    )
    return Deployable(
        name=f'{HOST}_0000:3b:00.0_{name}',
        resource_class='VGPU',
        total=len(handles),
        handles=handles,
        attributes={'places': places},
    )


@pytest.fixture
def elastic(database: Database) -> ElasticCard:
    return ElasticCard(database)


def test_claim_reserves_other_sizes(elastic: ElasticCard) -> None:
    assert elastic.read_reserved() == {'1G': 0, '2G': 0, '3G': 0, '7G': 0}
    elastic.bind('1G')
    assert elastic.list_places() == [('1G', 6)]
    assert elastic.read_reserved() == {'1G': 0, '2G': 0, '3G': 1, '7G': 1}
    assert elastic.read_free() == {'1G': 6, '2G': 3, '3G': 1, '7G': 0}
    elastic.bind('3G')
    assert elastic.list_places() == [('3G', 0), ('1G', 6)]
    assert elastic.read_reserved() == {'1G': 4, '2G': 2, '3G': 1, '7G': 1}
    assert elastic.read_free() == {'1G': 2, '2G': 1, '3G': 0, '7G': 0}


def test_claim_size_without_room_fails(elastic: ElasticCard) -> None:
    """Two builds take the last slot in two sizes: one of them is refused."""
    first, second = elastic.begin('7G'), elastic.begin('1G')
    elastic.claim(*first)
    with pytest.raises(NoFreeHandle, match='_1G do not fit beside the units in use'):
        elastic.claim(*second)
    assert elastic.list_places() == [('7G', 0)]


def test_claim_two_sizes_of_one_instance(elastic: ElasticCard) -> None:
    elastic.bind('1G', '3G', '2G', '1G')
    slots = [
        slot
        for name, place in elastic.list_places()
        for slot in range(place, place + int(_PLACES[name][-1]))
    ]
    assert len(slots) == len(set(slots)) == 8
    assert set(elastic.read_free().values()) == {0}


def test_claim_and_release_write_sync_job(
    elastic: ElasticCard, database: Database
) -> None:
    elastic.end_sync_jobs()
    uuids = elastic.bind('1G')
    elastic.bind('1G')
    assert elastic.end_sync_jobs() == 1
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True)
    assert elastic.end_sync_jobs() == 1


def test_released_units_are_waited_for(
    elastic: ElasticCard, database: Database
) -> None:
    """The host has not removed the unit of a deleted ARQ yet."""
    change_rows(database, AttachHandle, needs_host=True)
    uuids, job = elastic.begin('7G')
    elastic.claim(uuids, job)
    change_rows(database, AttachHandle, preparing=False)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True)
    assert elastic.read_reserved() == {'1G': 7, '2G': 3, '3G': 2, '7G': 1}
    with pytest.raises(UnitsBeingCleaned):
        elastic.claim(*elastic.begin('1G'))


@pytest.mark.parametrize('places', ['', 'x', '0:99', '1,3:2'])
def test_invalid_places_fail_closed(
    elastic: ElasticCard, database: Database, places: str
) -> None:
    """The places of a unit in use are not valid any more: the card is full."""
    elastic.bind('2G')
    of_2g = Attribute.key == 'places', Attribute.value == _PLACES['2G']
    change_rows(database, Attribute, *of_2g, value=places)
    assert {**elastic.read_free(), '2G': 0} == {'1G': 0, '2G': 0, '3G': 0, '7G': 0}
    with pytest.raises(NoFreeHandle):
        elastic.bind('1G')


def test_random_claims_never_overlap(elastic: ElasticCard, database: Database) -> None:
    choose, bound = random.Random(7), list[list[str]]()
    for _ in range(60):
        if bound and choose.random() < 0.45:
            uuids = bound.pop(choose.randrange(len(bound)))
            database.write(release.delete_arqs, uuids, ANY_PROJECT, True)
        else:
            size, free = choose.choice(list(_PLACES)), elastic.read_free()
            if free[size]:
                bound.append(elastic.bind(size))
            else:
                with pytest.raises(NoFreeHandle):
                    elastic.bind(size)
        _check_truth(elastic)


def _check_truth(elastic: ElasticCard) -> None:
    """Check that no unit overlaps, and that each size has what fits."""
    slots_used, used = 0, dict.fromkeys(_PLACES, 0)
    for name, place in elastic.list_places():
        size = Size.parse(_PLACES[name])
        assert size is not None
        assert not slots_used & size.mask(place)
        slots_used |= size.mask(place)
        used[name] += 1
    for name, places in _PLACES.items():
        size = Size.parse(places)
        assert size is not None
        fitting = size.count_fitting(slots_used)
        assert elastic.read_free()[name] == fitting
        assert _TOTALS[name] - elastic.read_reserved()[name] - used[name] == fitting
