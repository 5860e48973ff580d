# SPDX-License-Identifier: Apache-2.0
"""Alternatives of device profiles: the choice of the service, and that of an instance.

The allocation of an instance corrects the alternatives of its ARQs.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.clock import now_ms, read_now_ms
from cyborg_lite.db.core.tables import (
    Arq,
    DeviceProfile,
    ProfileChoice,
    ProfilePromise,
)
from cyborg_lite.db.inventory.handles import GENERATION_PARAMETER, IS_CURRENT_BIND
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.profiles.alternatives import Choice, find_alternative
from cyborg_lite.model.profiles.device_profiles import Group

_ARQS: Final = (
    select(Arq.uuid, Arq.device_rp_uuid, Arq.device_profile_group_id)
    .add_columns(Arq.alternatives, Arq.alternative)
    .where(
        Arq.uuid.in_(bindparam('uuids')),
        Arq.alternatives.is_not(None),
        Arq.state == State.BIND_STARTED,
        IS_CURRENT_BIND,
    )
    .order_by(Arq.id)
    .with_for_update()
)
_CHANGE: Final = update(Arq).where(Arq.uuid == bindparam('arq'))

Amounts = Mapping[str, int]  # by resource class
_ArqRow = Row[*tuple[Any, ...]]  # Any: the columns of _ARQS


def correct_alternatives(
    session: Session,
    uuids: Sequence[str],
    generation: int,
    allocations: Mapping[str, Amounts],
    traits: Mapping[str, Collection[str]],
) -> dict[int, int | None]:
    """Store which alternatives the providers of the ARQs of an instance satisfy.

    :param uuids: ARQs of one instance
    :param generation: of their bind
    :param allocations: of the instance, by provider
    :param traits: by provider
    :returns: index of the alternative by index of the group; None: the providers
        satisfy no alternative, and the ARQs do not change
    """
    parameters = {'uuids': uuids, GENERATION_PARAMETER: generation}
    groups: dict[int, list[_ArqRow]] = defaultdict(list)
    for row in session.execute(_ARQS, parameters):
        groups[row.device_profile_group_id].append(row)
    numbers: dict[int, int | None] = {}
    for index, arqs in groups.items():
        provider = arqs[0].device_rp_uuid
        options = arqs[0].alternatives
        numbers[index] = find_alternative(
            options, allocations.get(provider, {}), traits.get(provider, ())
        )
        if numbers[index] not in (None, arqs[0].alternative):
            _change_group(session, arqs, options, numbers[index] or 0)
    return numbers


def _change_group(
    session: Session,
    arqs: Sequence[_ArqRow],
    options: Sequence[dict[str, str]],
    number: int,
) -> None:
    classes = Group.parse(options[number]).requirements.unit_classes
    rows = [
        {
            'arq': arq.uuid,
            'device_profile_group': options[number],
            'alternative': number,
            'resource_class': resource_class,
        }
        # All alternatives of a group have the same number of ARQs.
        for arq, resource_class in zip(arqs, classes, strict=False)
    ]
    for row in rows:
        change(session, _CHANGE, row)


# --- choices ---
#
# The database stores the last choice of each profile for all processes of the service.
#
# A choice that Nova reads is a promise: it counts against what is free until Nova
# creates the ARQs, at most PROMISE_SECONDS. By then Placement has the allocation.

PROMISE_SECONDS: Final = 30
"""Seconds for which a promise counts. A build that Nova abandons creates no ARQs."""

_MAX_PROMISES: Final = 1000  # of a profile

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
    _store(session, profile_id, choice, read_now_ms(session))
    return tuple(choice)


def _store(session: Session, profile_id: int, choice: Sequence[int], now: int) -> None:
    row = {'device_profile_id': profile_id, 'choice': list(choice)}
    _UPSERT.run(session, {**row, 'chosen_at': now})


def count_promises(session: Session, uuid: str) -> Counter[Choice]:
    """Return the number of promises of a profile that count now, by choice."""
    statement = (
        select(ProfilePromise.choice)
        .join(DeviceProfile, DeviceProfile.id == ProfilePromise.device_profile_id)
        .where(
            DeviceProfile.uuid == uuid,
            ProfilePromise.promised_at > now_ms() - PROMISE_SECONDS * 1000,
        )
    )
    return Counter(map(tuple, session.scalars(statement)))


def promise_choice(
    session: Session, uuid: str, choice: Sequence[int], room: int | None
) -> bool:
    """Store a choice that Nova reads, and promise it.

    The lock of the profile orders the processes. Promises that do not count any more
    are deleted.

    :param room: number of instances that can have the choice at once; None: not limited
    :returns: False: as many promises of the choice count already; nothing is stored
    :raises DeviceProfileNotFound: the profile has been deleted
    """
    profile_id = session.scalar(_LOCK, {'uuid': uuid})
    if profile_id is None:
        raise DeviceProfileNotFound(name=uuid)
    promises = count_promises(session, uuid)
    if room is not None and promises[tuple(choice)] >= room:
        return False
    now = read_now_ms(session)
    expired = (
        ProfilePromise.device_profile_id == profile_id,
        ProfilePromise.promised_at <= now - PROMISE_SECONDS * 1000,
    )
    change(session, delete(ProfilePromise).where(*expired))
    _store(session, profile_id, choice, now)
    if promises.total() < _MAX_PROMISES:
        row = {'device_profile_id': profile_id, 'choice': list(choice)}
        change(session, insert(ProfilePromise), {**row, 'promised_at': now})
    return True
