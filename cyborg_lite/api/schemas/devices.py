# SPDX-License-Identifier: Apache-2.0
"""Schemas of device bodies."""

from typing import Final

from cyborg_lite.api.validation import Schema

# The path is the whole action; clients send no body, {} or null.
ACTION: Final = Schema({'type': ['object', 'null'], 'examples': [{}]}, optional=True)

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
                'path': {'enum': ['/status', '/reason', '/mode']},
                'value': {'type': 'string', 'maxLength': 255},
            },
        },
        'examples': [
            [
                {'op': 'replace', 'path': '/status', 'value': 'maintaining'},
                {'op': 'add', 'path': '/reason', 'value': 'The fan is being replaced.'},
            ],
            [{'op': 'replace', 'path': '/mode', 'value': 'sym;asym'}],
        ],
    }
)
