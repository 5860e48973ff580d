# SPDX-License-Identifier: Apache-2.0
"""Schemas of attribute bodies."""

from typing import Final

from cyborg_lite.api.call.validation import Schema

_BARE: Final = {
    'type': 'object',
    'required': ['deployable_id', 'key', 'value'],
    'properties': {
        'deployable_id': {'type': ['integer', 'string']},
        'key': {'type': 'string', 'minLength': 1, 'maxLength': 255},
        'value': {'type': 'string', 'minLength': 1, 'maxLength': 1024},
    },
}

# Command line clients send the object in a wrapper, scripts without it.
CREATE: Final = Schema(
    {
        'if': {'type': 'object', 'required': ['attribute']},
        'then': {'properties': {'attribute': _BARE}},
        'else': _BARE,
        'examples': [{'deployable_id': 1, 'key': 'rack', 'value': 'r17'}],
    }
)
