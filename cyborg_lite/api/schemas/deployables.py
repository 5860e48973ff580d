# SPDX-License-Identifier: Apache-2.0
"""Schemas of the bodies of deployables and attributes."""

from typing import Final

from cyborg_lite.api.call.validation import Schema

_ATTRIBUTE: Final = {
    'type': 'object',
    'required': ['deployable_id', 'key', 'value'],
    'properties': {
        'deployable_id': {'type': ['integer', 'string']},
        'key': {'type': 'string', 'minLength': 1, 'maxLength': 255},
        'value': {'type': 'string', 'minLength': 1, 'maxLength': 1024},
    },
}

# Command line clients send the object in a wrapper, scripts without it.
CREATE_ATTRIBUTE: Final = Schema(
    {
        'if': {'type': 'object', 'required': ['attribute']},
        'then': {'properties': {'attribute': _ATTRIBUTE}},
        'else': _ATTRIBUTE,
        'examples': [{'deployable_id': 1, 'key': 'rack', 'value': 'r17'}],
    }
)


PROGRAM: Final = Schema(
    {
        'type': 'array',
        'minItems': 1,
        'maxItems': 1,
        'items': {
            'type': 'object',
            'required': ['op', 'path', 'value'],
            'properties': {
                'op': {'const': 'replace'},
                'path': {'const': '/program'},
                'value': {
                    'type': 'array',
                    'minItems': 1,
                    'maxItems': 1,
                    'items': {
                        'type': 'object',
                        'required': ['image_uuid'],
                        'properties': {'image_uuid': {'type': 'string'}},
                    },
                },
            },
        },
        'examples': [
            [
                {
                    'op': 'replace',
                    'path': '/program',
                    'value': [{'image_uuid': 'd5ca2f11-3108-4426-a11c-a959987565df'}],
                }
            ]
        ],
    },
    is_patch=True,
)
