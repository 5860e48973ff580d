# SPDX-License-Identifier: Apache-2.0
"""Plans of device profiles, which write nothing."""

from dataclasses import replace

from cyborg_lite.db.device_profiles import profile_plans, profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.model.device_profiles import Inheritance, Limits, ProfileChange
from cyborg_lite.model.queries import Query
from tests.builders.alternatives import LARGE, NIC, SMALL, build_profile, create_profile
from tests.support.sql_statements import statements, writes

LIMITS = Limits()


def test_preview_shows_profile_and_descendants(database: Database) -> None:
    parent = create_profile(database, (LARGE,))
    source = Inheritance(parent.uuid, own_groups='[{"resources:PGPU": "2"}]')
    child = replace(build_profile((NIC,)), groups=(), inheritance=source)
    with statements(database) as sql:
        new = profile_plans.flatten_profiles
        (flat,) = database.read(new, [child], None, LIMITS)
    assert not writes(sql)
    assert flat.groups == ({**LARGE, 'resources:PGPU': '2'},)
    database.write(profiles.create_profiles, [child], None, LIMITS)
    change = ProfileChange(('groups', 'alternatives'), groups=(SMALL,))
    with statements(database) as sql:
        preview = profile_plans.preview_change
        plans = database.read(preview, parent.uuid, change, None, LIMITS)
    assert not writes(sql)
    assert [plan.groups for plan in plans] == [
        (SMALL,),
        ({**SMALL, 'resources:PGPU': '2'},),
    ]
    stored = database.read(profiles.list_profiles, Query())
    assert [item.groups for item in stored] == [parent.groups, flat.groups]


def test_uuid_of_same_request_precedes_name(database: Database) -> None:
    first, second = build_profile((LARGE,)), build_profile((SMALL,))
    second = replace(second, name=first.uuid)
    child = replace(build_profile((NIC,)), inheritance=Inheritance(first.uuid))
    new = [first, second, child]
    flat = database.read(profile_plans.flatten_profiles, new, None, LIMITS)
    assert flat[2].groups == (LARGE,)
