# SPDX-License-Identifier: Apache-2.0
"""Correction of the alternatives of ARQs by the allocation of their instance."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Row, bindparam, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.inventory.handles import GENERATION_PARAMETER, IS_CURRENT_BIND
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.profiles.alternatives import find_alternative
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
