# SPDX-License-Identifier: Apache-2.0
"""SQL conditions that describe an attach handle, and the bind that has claimed it.

Each accepted bind gives its ARQs a higher generation, which its jobs carry. A job of an
earlier bind finds no ARQ of its generation, and changes nothing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Integer, and_, bindparam, false, func, or_, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable, Device, Service
from cyborg_lite.model.arqs.arqs import DEVICE_IN_USE_STATES
from cyborg_lite.model.devices.cleaning import FREE_STATES, CleanState
from cyborg_lite.model.hosts.services import ServiceState

GENERATION_PARAMETER: Final = 'of_generation'
"""Name of the parameter of the conditions; 0: the job names no generation."""

_GENERATION: Final = bindparam(GENERATION_PARAMETER, type_=Integer)

# Jobs that a conductor of an earlier release wrote name no generation.
_IS_ANY: Final = _GENERATION == 0

IS_CURRENT_BIND: Final = or_(_IS_ANY, Arq.generation == _GENERATION)
"""SQL that is true for an ARQ whose last accepted bind has the generation."""

CLAIMED_HANDLE: Final = or_(_IS_ANY, AttachHandle.bind_generation == _GENERATION)
"""SQL that is true for a handle that the bind has claimed. It needs its ARQ."""


HELD: Final = or_(
    AttachHandle.arq_uuid.is_not(None), AttachHandle.clean_state != CleanState.CLEAN
)
"""SQL that is true for a handle that an ARQ owns, or whose unit is not clean."""

FREE: Final = and_(
    AttachHandle.arq_uuid.is_(None),
    AttachHandle.clean_state.in_(FREE_STATES),
    AttachHandle.in_use.is_(False),
    AttachHandle.missing.is_(False),
    # Without an ARQ: a programming job loads something into the device.
    AttachHandle.preparing.is_(False),
)
"""SQL that is true for a handle that an ARQ can claim."""

# Any: columns of any types.
HANDLE_FIELDS: Final[dict[str, Any]] = {
    'arq_uuid': func.coalesce(AttachHandle.arq_uuid, ''),
    'deployable_name': Deployable.name,
    'host_down': func.coalesce(Service.state == ServiceState.DOWN, false()),
}
"""Fields of an allocated handle that are no columns of the handle or its device."""


def needs_cleaning() -> ColumnElement[bool]:
    """Return SQL that is true for a handle that its host must clean.

    The ARQ that owns the handle does not use it any more. For a SELECT that joins
    ``arqs``.
    """
    return and_(
        AttachHandle.needs_host.is_(True),
        AttachHandle.preparing.is_(False),
        Arq.state.not_in(DEVICE_IN_USE_STATES),
    )


# Any: a column of a deployable or a device, and its values.
def list_owners(
    session: Session, key: Any, *conditions: ColumnElement[bool]
) -> Mapping[Any, Sequence[str]]:
    """Return the ARQs that own handles, by the value of a column."""
    rows = session.execute(
        select(key, AttachHandle.arq_uuid)
        .select_from(AttachHandle)
        .join(Deployable, Deployable.id == AttachHandle.deployable_id)
        .join(Device, Device.id == Deployable.device_id)
        .where(AttachHandle.arq_uuid.is_not(None), *conditions)
        .order_by(AttachHandle.id)
    )
    owners: defaultdict[Any, list[str]] = defaultdict(list)
    for value, arq_uuid in rows:
        owners[value].append(str(arq_uuid))
    return owners
