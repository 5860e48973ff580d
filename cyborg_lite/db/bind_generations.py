# SPDX-License-Identifier: Apache-2.0
"""Bind generations: which bind of an ARQ a job belongs to.

Each accepted bind gives its ARQs a higher generation, which its jobs carry. A job of an
earlier bind finds no ARQ of its generation, and changes nothing.
"""

from typing import Final

from sqlalchemy import Integer, and_, bindparam, or_

from cyborg_lite.db.tables import Arq, AttachHandle

PARAMETER: Final = 'of_generation'
"""Name of the parameter of the conditions; 0: the job names no generation."""

_GENERATION: Final = bindparam(PARAMETER, type_=Integer)

# Jobs that a conductor of an earlier release wrote name no generation.
_IS_ANY: Final = _GENERATION == 0

IS_CURRENT: Final = or_(_IS_ANY, Arq.generation == _GENERATION)
"""SQL that is true for an ARQ whose last accepted bind has the generation."""

CLAIMED_HANDLE: Final = or_(
    _IS_ANY,
    AttachHandle.bind_generation == _GENERATION,
    # Claimed by a conductor of an earlier release, which does not store the number.
    and_(AttachHandle.bind_generation == 0, Arq.generation == _GENERATION),
)
"""SQL that is true for a handle that the bind has claimed. It needs its ARQ."""
