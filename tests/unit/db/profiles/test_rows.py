# SPDX-License-Identifier: Apache-2.0
"""Conversion of device profiles from and to rows."""

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles, rows
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.profiles.device_profiles import ProfileChange
from tests.builders.alternatives import LARGE, SMALL, create_profile


def test_row_is_read_as_it_was_created(database: Database) -> None:
    profile = create_profile(database, (LARGE, SMALL))
    read = database.write(
        lambda session: rows.lock_profile(session, profile.uuid, None)[1]
    )
    assert read == profile
    assert rows.store_alternatives(profile.alternatives) == [[SMALL]]
    assert rows.store_alternatives(()) is None


def test_hidden_profile_cannot_be_locked(database: Database) -> None:
    profile = create_profile(database, (LARGE,))
    change = ProfileChange(('is_public',), is_public=False)
    database.write(profiles.update_profile, profile.uuid, change)
    with pytest.raises(DeviceProfileNotFound):
        database.write(rows.lock_profile, profile.uuid, 'lab')
