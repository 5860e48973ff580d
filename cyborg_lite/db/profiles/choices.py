# SPDX-License-Identifier: Apache-2.0
"""Choices of the alternatives of device profiles.

The database stores the last choice of each profile for all processes of the service.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert
from cyborg_lite.db.core.clock import now_ms, read_now_ms
from cyborg_lite.db.core.tables import DeviceProfile, ProfileChoice
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.profiles.alternatives import Choice

_FIND: Final = (
    select(ProfileChoice.choice, (now_ms() - ProfileChoice.chosen_at).label('age'))
    .join(DeviceProfile, DeviceProfile.id == ProfileChoice.device_profile_id)
    .where(DeviceProfile.uuid == bindparam('uuid'))
)
_LOCK: Final = (
    select(DeviceProfile.id)
    .where(DeviceProfile.uuid == bindparam('uuid'))
    .with_for_update()
)
_UPSERT: Final = Upsert(
    ProfileChoice, [ProfileChoice.device_profile_id], ['choice', 'chosen_at']
)


def find_choice(session: Session, uuid: str, lifetime: int) -> Choice | None:
    """Return the last choice of a profile.

    :param lifetime: seconds for which a choice is valid
    :returns: None: the choice is older, or the service has not chosen yet
    """
    row = session.execute(_FIND, {'uuid': uuid}).one_or_none()
    if row is None or not 0 <= row.age < lifetime * 1000:
        return None
    return tuple(row.choice)


def store_choice(
    session: Session, uuid: str, choice: Sequence[int], lifetime: int
) -> Choice:
    """Store a choice, unless another process has stored one meanwhile.

    The lock of the profile orders the processes, so that all return the same choice.

    :returns: the choice that is valid now
    :raises DeviceProfileNotFound: the profile has been deleted
    """
    profile_id = session.scalar(_LOCK, {'uuid': uuid})
    if profile_id is None:
        raise DeviceProfileNotFound(name=uuid)
    present = find_choice(session, uuid, lifetime)
    if present is not None:
        return present
    row = {'device_profile_id': profile_id, 'choice': list(choice)}
    _UPSERT.run(session, {**row, 'chosen_at': read_now_ms(session)})
    return tuple(choice)
