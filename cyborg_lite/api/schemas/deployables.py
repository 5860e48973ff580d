# SPDX-License-Identifier: Apache-2.0
"""Schemas of deployable bodies."""

from typing import Final

from cyborg_lite.api.call.validation import Schema

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
