# SPDX-License-Identifier: Apache-2.0
"""Schemas of the bodies of decisions about unclean units."""

from typing import Final

from cyborg_lite.api.call.validation import Schema
from cyborg_lite.model.devices.cleaning import MAX_ACTOR

_UNIT: Final = {'type': 'string', 'minLength': 1, 'maxLength': 128}

RETRY: Final = Schema(
    {
        'type': ['object', 'null'],
        'properties': {'unit': _UNIT},
        'additionalProperties': False,
        'examples': [{'unit': '0000:c2:00.0'}],
    },
    optional=True,
)

ACCEPT: Final = Schema(
    {
        'type': 'object',
        'required': ['name'],
        'properties': {
            'name': {'type': 'string', 'minLength': 1, 'maxLength': MAX_ACTOR},
            'unit': _UNIT,
        },
        'additionalProperties': False,
        'examples': [{'name': 'operator', 'unit': '0000:c2:00.0'}],
    }
)

RESET: Final = Schema(
    {
        'type': ['object', 'null'],
        'properties': {
            'unit': _UNIT,
            'force': {'type': 'string', 'minLength': 1, 'maxLength': MAX_ACTOR},
        },
        'additionalProperties': False,
        'examples': [{'unit': '0000:c2:00.0'}, {'force': 'operator'}],
    },
    optional=True,
)
