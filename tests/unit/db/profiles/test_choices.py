# SPDX-License-Identifier: Apache-2.0
"""Profiles with alternatives, the choice of them, and the ARQs that follow it."""

from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import alternatives, arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import formats, profiles, selectors
from cyborg_lite.errors.profiles import (
    DeviceProfileNotFound,
)
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from tests.builders.alternatives import (
    LARGE,
    NIC,
    SHARED,
    SMALL,
    build_profile,
    create_profile,
)
from tests.builders.rows import PROJECT
from tests.builders.selector_fleets import compile_keys, find_trait
from tests.support.sql_statements import statements


def _list(database: Database) -> list[DeviceProfile]:
    return list(database.read(profiles.list_profiles, Query()))


def _store(database: Database, uuid: str, *choice: int) -> tuple[int, ...]:
    return database.write(alternatives.store_choice, uuid, choice, 0)


def test_update_groups_replaces_alternatives_and_choice(database: Database) -> None:
    profile = create_profile(database, (LARGE, SMALL))
    _store(database, profile.uuid, 1)
    change = ProfileChange(
        ('groups', 'alternatives'), groups=(SMALL,), alternatives=((SHARED, LARGE),)
    )
    changed = database.write(profiles.update_profile, profile.uuid, change)
    assert changed.alternatives == ((SHARED, LARGE),)
    assert _list(database)[0].alternatives == ((SHARED, LARGE),)
    assert database.read(alternatives.find_choice, profile.uuid, 60) is None


def test_find_choice_expires(database: Database) -> None:
    uuid = create_profile(database, (LARGE, SMALL)).uuid
    assert database.read(alternatives.find_choice, uuid, 60) is None
    _store(database, uuid, 1)
    assert database.read(alternatives.find_choice, uuid, 60) == (1,)
    assert database.read(alternatives.find_choice, uuid, 0) is None


def test_store_choice_keeps_valid_choice_of_other_process(database: Database) -> None:
    uuid = create_profile(database, (LARGE, SMALL)).uuid
    assert database.write(alternatives.store_choice, uuid, (1,), 60) == (1,)
    assert database.write(alternatives.store_choice, uuid, (0,), 60) == (1,)
    assert _store(database, uuid, 0) == (0,)
    with pytest.raises(DeviceProfileNotFound):
        _store(database, str(uuid4()), 0)


def test_store_choice_is_no_change_of_profile(database: Database) -> None:
    profile = create_profile(database, (LARGE, SMALL))
    _store(database, profile.uuid, 1)
    assert _list(database) == [profile]
    database.write(profiles.delete_profiles, [profile.uuid])
    assert _list(database) == []


def test_create_arqs_ignores_choice_that_does_not_exist(database: Database) -> None:
    profile = create_profile(database, (LARGE, SMALL))
    _store(database, profile.uuid, 7)
    (arq,) = database.write(arqs.create_arqs, profile.name, PROJECT)
    assert (arq.alternative, arq.device_profile_group) == (0, LARGE)


def test_create_arqs_with_alternatives_costs_no_statement(database: Database) -> None:
    counts = []
    for options in ((LARGE,), (LARGE, SMALL)):
        profile = create_profile(database, options)
        with statements(database) as sql:
            database.write(arqs.create_arqs, profile.name, PROJECT)
        counts.append(len(sql))
    assert counts[0] == counts[1]


def test_list_profile_groups_contains_alternatives(database: Database) -> None:
    name = create_profile(database, (LARGE, SHARED), (NIC,)).name
    groups = database.read(arqs.list_profile_groups, name, None)
    assert list(groups) == [LARGE, NIC, SHARED]


def test_selectors_of_alternatives_are_listed(database: Database) -> None:
    selecting = compile_keys(selector='device.memory_mib >= 40GiB')
    create_profile(database, (LARGE, selecting))
    (selector,) = database.read(selectors.list_selectors)
    assert selector.trait == find_trait(selecting)
    profile = build_profile((LARGE, selecting))
    assert database.write(
        selectors.schedule_evaluation, (*profile.groups, *profile.alternatives[0])
    )


def test_former_traits_of_alternatives_are_listed(database: Database) -> None:
    name = 'CUSTOM_GPU_PRODUCT_ID_1EB8'
    former = {'resources:PGPU': '1', f'trait:{name}': 'required'}
    create_profile(database, (LARGE, former))
    assert name in database.read(formats.list_former_traits, 'compute-1')
