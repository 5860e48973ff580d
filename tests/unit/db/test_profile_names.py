# SPDX-License-Identifier: Apache-2.0
"""Profiles that are changed: former names go on meaning them, and them alone."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.db import arqs, device_profiles, profile_names
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    DeviceProfileDisabled,
    DeviceProfileExists,
    DeviceProfileNotFound,
)
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from tests.fakes.statements import statements, writes

GROUPS = ({'resources:PGPU': '2'},)


def new(name: str) -> DeviceProfile:
    moment = datetime.now(UTC)
    return DeviceProfile(str(uuid4()), name, 'old', GROUPS, created_at=moment)


def create(database: Database, name: str) -> DeviceProfile:
    return database.write(device_profiles.create, new(name))


def change(database: Database, profile: DeviceProfile, **to: Any) -> DeviceProfile:
    wanted = ProfileChange(fields=tuple(to), **to)
    return database.write(device_profiles.change_one, profile.uuid, wanted)


def called(database: Database, *names: str) -> list[str]:
    """The uuids of the profiles that the names find."""
    query = Query(filters={'name': names})
    return [one.uuid for one in database.read(device_profiles.listed, query)]


def test_what_is_named_changes_and_the_rest_stays(database: Database) -> None:
    made = create(database, 'a')
    changed = change(database, made, description=None, enabled=False)
    assert changed.updated_at is not None
    wanted = replace(made, description=None, enabled=False)
    assert replace(changed, updated_at=None) == wanted
    assert database.read(device_profiles.listed, Query()) == (changed,)


def test_requests_keep_the_groups_that_they_were_made_of(database: Database) -> None:
    made = create(database, 'a')
    before = database.write(arqs.create, 'a', None)
    change(database, made, groups=({'resources:FPGA': '1'},), name='b')
    listed = database.read(arqs.listed, Query(), Scope(project_id=None))
    assert [one.device_profile_group for one in listed] == [GROUPS[0]] * 2
    assert {one.device_profile_name for one in listed} == {'a'}
    assert [one.uuid for one in listed] == [one.uuid for one in before]
    (after,) = database.write(arqs.create, 'b', None)
    assert after.device_profile_group == {'resources:FPGA': '1'}


def test_every_name_that_it_had_finds_a_profile_once(database: Database) -> None:
    made = create(database, 'a')
    other = create(database, 'z')
    for name in ('b', 'c'):
        change(database, made, name=name)
    for name in ('a', 'b', 'c'):
        assert called(database, name) == [made.uuid]
        assert len(database.write(arqs.create, name, None)) == 2
    assert called(database, 'a', 'b', 'c', 'z') == [made.uuid, other.uuid]


def test_a_former_name_is_free_for_its_profile_alone(database: Database) -> None:
    made, other = create(database, 'a'), create(database, 'z')
    change(database, made, name='b')
    with pytest.raises(DeviceProfileExists, match='Device profile a already exists'):
        create(database, 'a')
    with pytest.raises(DeviceProfileExists, match='Device profile a already exists'):
        change(database, other, name='a')
    assert change(database, made, name='a').name == 'a'
    assert called(database, 'b') == called(database, 'a') == [made.uuid]
    with pytest.raises(DeviceProfileExists):
        create(database, 'b')


def test_the_name_of_another_is_refused_and_nothing_changes(database: Database) -> None:
    made = create(database, 'a')
    create(database, 'z')
    with pytest.raises(DeviceProfileExists, match='Device profile z already exists'):
        change(database, made, name='z', enabled=False)
    assert database.read(device_profiles.listed, Query())[0] == made


def test_the_profile_that_has_a_name_comes_before_the_one_that_had_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is left by two who wrote at the same moment; here the check is off."""
    made = create(database, 'a')
    change(database, made, name='b')
    named = profile_names.insertion
    monkeypatch.setattr(
        profile_names,
        'insertion',
        lambda row: named({**row, 'name': 'x'}),
    )
    other = create(database, 'a')
    monkeypatch.setattr(profile_names, 'rename', lambda *_: None)
    change(database, other, name='a')
    assert called(database, 'a') == [other.uuid]
    requests = database.write(arqs.create, 'a', None)
    assert {one.device_profile_name for one in requests} == {'a'}  # not b


def test_former_names_go_with_their_profile(database: Database) -> None:
    made = create(database, 'a')
    change(database, made, name='b')
    with pytest.raises(DeviceProfileNotFound):
        database.write(device_profiles.delete, ['a'])
    database.write(device_profiles.delete, ['b'])
    assert called(database, 'a') == []
    assert create(database, 'a').name == 'a'


def test_a_profile_that_is_not_there_cannot_be_changed(database: Database) -> None:
    with pytest.raises(DeviceProfileNotFound):
        change(database, new('a'), enabled=False)


def test_a_disabled_profile_makes_no_requests_until_it_is_enabled(
    database: Database,
) -> None:
    made = create(database, 'a')
    before = database.write(arqs.create, 'a', None)
    change(database, made, enabled=False)
    with pytest.raises(DeviceProfileDisabled, match='Device profile a is disabled'):
        database.write(arqs.create, 'a', None)
    listed = database.read(arqs.listed, Query(), Scope(project_id=None))
    assert [one.uuid for one in listed] == [one.uuid for one in before]
    change(database, made, enabled=True)
    assert len(database.write(arqs.create, 'a', None)) == 2


def test_of_several_all_are_created_or_none(database: Database) -> None:
    made = database.write(device_profiles.create_all, [new('a'), new('b')])
    assert database.read(device_profiles.listed, Query()) == made
    with pytest.raises(DeviceProfileExists, match='Device profile a already'):
        database.write(device_profiles.create_all, [new('c'), new('a')])
    with pytest.raises(DeviceProfileExists, match='Device profile d already'):
        database.write(device_profiles.create_all, [new('d'), new('d')])
    assert database.read(device_profiles.listed, Query()) == made


def test_former_names_cost_no_statement(database: Database) -> None:
    made = create(database, 'a')
    change(database, made, name='b')
    for name in ('a', 'b'):
        with statements(database) as seen:
            database.write(arqs.create, name, 'p', 'p')
        assert (len(seen), len(writes(seen))) == (2, 1)
        with statements(database) as seen:
            called(database, name)
        assert len(seen) == 1
