# SPDX-License-Identifier: Apache-2.0
"""Tests of device profiles in former formats; on servers in ``tests/functional``."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.profiles import formats
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.rows import HOST, add_profile
from tests.builders.table_rows import change_rows

FORMER = {'resources:PGPU': '1', 'trait:CUSTOM_GPU_PRODUCT_ID_1EB8': 'required'}
PRESENT = {'resources:PGPU': '1', 'trait:CUSTOM_NVIDIA_1EB8': 'required'}


def uses_former_traits(session: Session, hostname: str) -> bool:
    return bool(session.scalar(select(formats.uses_former_traits(hostname))))


def test_replace_groups_of_changed_profile_changes_nothing(database: Database) -> None:
    add_profile(database, [FORMER])
    ((uuid, (_name, groups)),) = database.read(formats.list_groups).items()
    assert database.write(formats.replace_groups, uuid, groups, [PRESENT])
    assert not database.write(formats.replace_groups, uuid, groups, [FORMER])
    assert database.read(formats.list_groups)[uuid][1] == [PRESENT]


def test_former_trait_of_profile_is_listed(database: Database) -> None:
    assert not database.read(uses_former_traits, HOST)
    add_profile(database, [PRESENT])
    assert not database.read(uses_former_traits, HOST)
    add_profile(database, [PRESENT, FORMER])
    assert database.read(uses_former_traits, HOST)
    traits = database.read(formats.list_former_traits, HOST)
    assert traits == {'CUSTOM_GPU_PRODUCT_ID_1EB8'}


def test_former_trait_of_instance_counts_on_its_host(database: Database) -> None:
    create_bound_arqs(database, 1)
    change_rows(database, Arq, device_profile_group=FORMER)
    assert database.read(uses_former_traits, HOST)
    assert not database.read(uses_former_traits, 'elsewhere')
    profiles = database.read(formats.list_groups)
    counts = [
        database.read(formats.count_instances, uuid, [PRESENT]) for uuid in profiles
    ]
    assert counts == [1]
