# SPDX-License-Identifier: Apache-2.0
"""JSON as a client may send it: RFC 8259, of limited depth, and nothing beyond."""

import json
from typing import Any, NoReturn

from cyborg_lite.exceptions import InvalidInput


def parse(raw: bytes, depth: int) -> Any:
    """What the body says; it may be of any type.

    :param depth: how deep arrays and objects may be nested
    :raises InvalidInput: it is not JSON, or nested deeper
    """
    try:
        document = json.loads(
            # Given bytes, the library would take UTF-16 and UTF-32 too.
            raw.decode('utf-8'),
            parse_constant=_refuse,
            parse_float=_finite,
        )
    except RecursionError:
        raise _too_deep(depth) from None
    except ValueError:
        # Also of what is not UTF-8, and of integers of thousands of digits.
        raise InvalidInput(reason='The request body is not valid JSON.') from None
    _check_depth(document, depth)
    return document


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and the infinities, which JSON does not have


def _finite(text: str) -> float:
    number = float(text)
    if number - number != 0:  # an infinity
        raise ValueError(text)
    return number


def _check_depth(document: Any, depth: int) -> None:
    level = [document]
    for _ in range(depth):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return
    if any(isinstance(value, dict | list) for value in level):
        raise _too_deep(depth)


def _inside(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _too_deep(depth: int) -> InvalidInput:
    return InvalidInput(
        reason=f'The request body is nested deeper than {depth} levels.'
    )
