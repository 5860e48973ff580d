# SPDX-License-Identifier: Apache-2.0
"""Bodies about device profiles. What the keys of a group may be is in the grammar."""

from typing import Final

from cyborg_lite.api.validation import Schema

CREATE: Final = Schema(
    {
        'type': 'array',
        'minItems': 1,
        'maxItems': 100,  # below 2.4: one
        'items': {
            'type': 'object',
            'required': ['name', 'groups'],
            'properties': {
                'name': {'type': 'string', 'minLength': 1},
                'uuid': {'type': ['string', 'null']},
                'description': {'type': ['string', 'null']},
                'groups': {
                    'type': 'array',
                    'minItems': 1,
                    'items': {
                        'type': 'object',
                        'additionalProperties': {'type': ['string', 'integer', 'null']},
                    },
                },
            },
        },
        'examples': [
            [
                {
                    'name': 'fpga-sha256',
                    'description': 'An FPGA that computes SHA-256.',
                    'groups': [
                        {
                            'resources:FPGA': '1',
                            'trait:CUSTOM_FPGA_INTEL': 'required',
                            'accel:function_name': 'sha256',
                        }
                    ],
                }
            ]
        ],
    }
)

PATCH: Final = Schema(
    {
        'type': 'array',
        'minItems': 1,
        'maxItems': 100,
        'items': {
            'type': 'object',
            'required': ['op', 'path', 'value'],
            'properties': {
                'op': {'enum': ['replace']},
                'path': {'type': 'string'},
            },
        },
        'examples': [[{'op': 'replace', 'path': '/enabled', 'value': False}]],
    }
)

ACCESS: Final = Schema(
    {
        'type': 'object',
        'required': ['projects'],
        'properties': {
            'projects': {
                'type': 'array',
                'minItems': 1,
                'maxItems': 1000,
                'items': {
                    'type': 'string',
                    'minLength': 1,
                    'maxLength': 64,
                    'pattern': '^[A-Za-z0-9_-]+$',
                },
            },
        },
        'examples': [{'projects': ['bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb']}],
    }
)

# Nothing is to be said; clients send nothing, {} or null.
EXPLAIN: Final = Schema({'type': ['object', 'null'], 'examples': [{}]}, optional=True)
