# SPDX-License-Identifier: Apache-2.0
"""Schemas of device bodies."""

from typing import Final

from cyborg_lite.api.call.validation import Schema
from cyborg_lite.model.devices.reconfiguration import MAX_SETTINGS, SET_NAME

# The hardware set declares the settings, and the conductor checks them.
_CONFIGURATION: Final = {
    'type': 'object',
    'required': ['set'],
    'additionalProperties': False,
    'properties': {
        'set': {'type': 'string', 'pattern': f'^{SET_NAME.pattern}$'},
        'settings': {'type': 'object', 'maxProperties': MAX_SETTINGS},
    },
}

_STATUS: Final = [
    {'op': 'replace', 'path': '/status', 'value': 'maintaining'},
    {'op': 'add', 'path': '/reason', 'value': 'The fan is being replaced.'},
]

PATCH_STATUS: Final = Schema(
    {
        'type': 'array',
        'minItems': 1,
        'maxItems': 2,
        'items': {
            'type': 'object',
            'required': ['op', 'path', 'value'],
            'properties': {
                'op': {'enum': ['add', 'replace']},
                'path': {'enum': ['/status', '/reason']},
                'value': {'type': 'string', 'maxLength': 255},
            },
        },
        'examples': [_STATUS],
    },
    is_patch=True,
)
"""Changes of all devices of a host."""

PATCH: Final = Schema(
    {
        'type': 'array',
        'minItems': 1,
        'maxItems': 2,
        'items': {
            'type': 'object',
            'required': ['op', 'path', 'value'],
            'properties': {
                'op': {'enum': ['add', 'replace']},
                'path': {'enum': ['/status', '/reason', '/mode', '/configuration']},
            },
            'if': {'properties': {'path': {'const': '/configuration'}}},
            'then': {'properties': {'value': _CONFIGURATION}},
            'else': {'properties': {'value': {'type': 'string', 'maxLength': 255}}},
        },
        'examples': [
            _STATUS,
            [{'op': 'replace', 'path': '/mode', 'value': 'sym;asym'}],
            [
                {
                    'op': 'replace',
                    'path': '/configuration',
                    'value': {'set': 'nvidia', 'settings': {'vgpus': 4}},
                }
            ],
        ],
    },
    is_patch=True,
)
