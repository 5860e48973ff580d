# SPDX-License-Identifier: Apache-2.0
"""Conversion of device profiles from and to rows."""

import pytest

from cyborg_lite.db.device_profiles import profile_rows, profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import DeviceProfileNotFound
from cyborg_lite.model.device_profiles import ProfileChange
from tests.builders.alternatives import LARGE, SMALL, create_profile


def test_row_is_read_as_it_was_created(database: Database) -> None:
    profile = create_profile(database, (LARGE, SMALL))
    read = database.write(
        lambda session: profile_rows.read_profile(
            profile_rows.lock_row(session, profile.uuid, None)
        )
    )
    assert read == profile
    assert profile_rows.store_alternatives(profile.alternatives) == [[SMALL]]
    assert profile_rows.store_alternatives(()) is None


def test_hidden_profile_cannot_be_locked(database: Database) -> None:
    profile = create_profile(database, (LARGE,))
    change = ProfileChange(('is_public',), is_public=False)
    database.write(profiles.update_profile, profile.uuid, change)
    with pytest.raises(DeviceProfileNotFound):
        database.write(profile_rows.lock_row, profile.uuid, 'lab')
