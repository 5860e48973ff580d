# SPDX-License-Identifier: Apache-2.0
"""The generation that an object must have to be changed, as an argument of calls."""

from typing import Any, Final

_SINCE: Final = '1.17'


# Any: arguments of `Caller.call`, which have several types.
def expect_generation(generation: int | None, since: str) -> dict[str, Any]:
    """Return the arguments of a call of the conductor.

    A conductor of an earlier release must not ignore the generation, and can serve the
    call without one.

    :param generation: None: any
    :param since: interface version that introduced the method
    """
    if generation is None:
        return {'since': since}
    return {'since': _SINCE, 'generation': generation}
