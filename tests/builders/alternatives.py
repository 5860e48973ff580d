# SPDX-License-Identifier: Apache-2.0
"""Device profiles whose groups have alternatives."""

from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.profiles.device_profiles import DeviceProfile

LARGE: Final = {'resources:PGPU': '1', 'trait:CUSTOM_LARGE': 'required'}
SMALL: Final = {'resources:PGPU': '1', 'trait:CUSTOM_SMALL': 'required'}
SHARED: Final = {'resources:VGPU': '1'}
NIC: Final = {'resources:CUSTOM_NIC': '1'}

Groups = tuple[dict[str, str], ...]


def build_profile(*options: Groups) -> DeviceProfile:
    """Return a profile.

    :param options: for each group the group and its alternatives
    """
    uuid = str(uuid4())
    return DeviceProfile(
        uuid=uuid,
        name=f'p-{uuid}',
        description=None,
        groups=tuple(group for group, *_ in options),
        created_at=datetime.now(UTC),
        alternatives=tuple(tuple(alternatives) for _, *alternatives in options),
    )


def create_profile(database: Database, *options: Groups) -> DeviceProfile:
    """Store a profile in the same way as the conductor does."""
    (created,) = database.write(profiles.create_profiles, [build_profile(*options)])
    return created
