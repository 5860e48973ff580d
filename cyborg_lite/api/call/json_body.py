# SPDX-License-Identifier: Apache-2.0
"""Strict parser for JSON bodies: RFC 8259 with a limited depth."""

import json
from typing import Any, NoReturn

from cyborg_lite.errors.base import InvalidInput


def parse(raw: bytes, depth: int) -> Any:
    """Return the parsed body, which may be of any JSON type.

    :param depth: maximum nesting of arrays and objects
    :raises InvalidInput: the body is not JSON or exceeds the depth
    """
    try:
        document = json.loads(
            # With bytes, the library would accept UTF-16 and UTF-32 too.
            raw.decode('utf-8'),
            parse_constant=_reject_constant,
            parse_float=_parse_finite,
        )
    except RecursionError:
        raise _build_depth_error(depth) from None
    except ValueError:
        # Also raised for invalid UTF-8 and for integers with thousands of digits.
        raise InvalidInput(reason='The request body is not valid JSON.') from None
    if is_deeper(document, depth):
        raise _build_depth_error(depth)
    return document


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are not JSON


def _parse_finite(text: str) -> float:
    number = float(text)
    if number - number != 0:  # too large: Python returns infinity
        raise ValueError(text)
    return number


def is_deeper(document: Any, depth: int) -> bool:
    """Return True if arrays and objects are nested deeper than ``depth``."""
    level = [document]
    for _ in range(depth):
        level = [value for value in level if isinstance(value, dict | list)]
        level = [
            child
            for value in level
            for child in (value.values() if isinstance(value, dict) else value)
        ]
    return any(isinstance(value, dict | list) for value in level)


def _build_depth_error(depth: int) -> InvalidInput:
    return InvalidInput(
        reason=f'The request body is nested deeper than {depth} levels.'
    )
