# SPDX-License-Identifier: Apache-2.0
"""Bodies about device profiles. What the keys of a group may be is in the grammar."""

from typing import Final

from cyborg_lite.api.validation import Schema

_WORD: Final = '^[A-Za-z0-9_-]+$'

_GROUP: Final = {
    'type': 'object',
    'description': 'What one resource provider must have. Names of resource classes '
    'and traits are brought to the form of Placement: upper case, underscores for '
    'hyphens, no spaces around.',
    'propertyNames': {
        'pattern': r'^((resources|trait):\s*[A-Za-z0-9_-]+\s*|accel:[A-Za-z0-9_-]+)$'
    },
    'patternProperties': {
        '^resources:': {
            'description': 'How many accelerators of the class FPGA, GPU, VGPU, PGPU '
            'or CUSTOM_...; at least one key of a group is of this kind.',
            'type': ['integer', 'string'],
            'minimum': 1,
            'pattern': '^[0-9]{1,20}$',
        },
        '^trait:': {
            'description': 'Whether the trait CUSTOM_... must be there; from '
            'microversion 2.4 on also any of os-traits.',
            'enum': ['required', 'forbidden'],
        },
        '^accel:': {
            'description': 'For the driver. Of the keys that are known, bitstream_id '
            'has a UUID, attach_target VM, host or none.',
            'type': ['string', 'null'],
        },
    },
    'additionalProperties': {'type': ['string', 'integer', 'null']},
}

CREATE: Final = Schema(
    {
        'type': 'array',
        'minItems': 1,
        'maxItems': 100,  # below 2.4: one
        'items': {
            'type': 'object',
            'required': ['name', 'groups'],
            'properties': {
                'name': {'type': 'string', 'pattern': _WORD},
                'uuid': {'type': ['string', 'null'], 'format': 'uuid'},
                'description': {'type': ['string', 'null']},
                'groups': {'type': 'array', 'minItems': 1, 'items': _GROUP},
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
                'op': {'enum': ['add', 'replace']},  # RFC 6902: alike for what is there
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
                    'pattern': _WORD,
                },
            },
        },
        'examples': [{'projects': ['bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb']}],
    }
)

# Nothing is to be said; clients send nothing, {} or null.
EXPLAIN: Final = Schema({'type': ['object', 'null'], 'examples': [{}]}, optional=True)
