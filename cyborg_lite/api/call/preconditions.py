# SPDX-License-Identifier: Apache-2.0
"""The header ``If-Match``: a change is refused if the object has changed meanwhile.

Its value is the field ``generation`` of the object as the client has read it, in double
quotes, or ``*`` for any generation.
"""

import re
from typing import Final

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.text import format_value

HEADER: Final = 'If-Match'

_ANY: Final = '*'
_QUOTED: Final = re.compile(r'"([0-9]{1,10})"')
_LARGEST: Final = 2**31 - 1  # the largest generation of every database


def parse_if_match(text: str | None) -> int | None:
    """Return the generation that the object must have.

    :param text: value of the header; None: the request has no header
    :returns: None: any generation
    :raises InvalidInput: the value is neither ``*`` nor one quoted generation
    """
    if text is None or text.strip() == _ANY:
        return None
    match = _QUOTED.fullmatch(text.strip())
    generation = int(match[1]) if match else _LARGEST + 1
    if generation > _LARGEST:
        raise InvalidInput(
            reason=f'{HEADER} must be * or a generation in double quotes, not '
            f'{format_value(text)}.'
        )
    return generation
