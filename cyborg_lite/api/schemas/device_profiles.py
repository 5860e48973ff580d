# SPDX-License-Identifier: Apache-2.0
"""Schemas of device profile bodies; the grammar of groups is in ``model``."""

from typing import Any, Final

from cyborg_lite.api.call.validation import Schema

_WORD: Final = '^[A-Za-z0-9_-]+$'

_FLAT_GROUP: Final[dict[str, Any]] = {
    'type': 'object',
    'description': 'Requirements on one resource provider. Names of resource classes '
    'and traits are normalized for Placement: upper case, underscores for hyphens, no '
    'surrounding spaces.',
    'propertyNames': {
        'pattern': r'^((resources|trait):\s*[A-Za-z0-9_-]+\s*|accel:[A-Za-z0-9_-]+)$'
    },
    'patternProperties': {
        '^resources:': {
            'description': 'Number of accelerators of the resource class FPGA, GPU, '
            'VGPU, PGPU or CUSTOM_...; a group needs at least one key of this type.',
            'type': ['integer', 'string'],
            'minimum': 1,
            'pattern': '^[0-9]{1,20}$',
        },
        '^trait:': {
            'description': 'Requires or forbids a trait CUSTOM_...; since microversion '
            '2.4 also any trait of os-traits.',
            'enum': ['required', 'forbidden'],
        },
        '^accel:': {
            'description': 'Property for the driver. bitstream_id is a UUID; '
            'attach_target is VM, host or none; since microversion 2.6 selector is an '
            'expression over typed attributes, and groups with an equal value of same '
            'become one group.',
            'type': ['string', 'null'],
        },
    },
    'additionalProperties': {'type': ['string', 'integer', 'null']},
}

_PATTERN: Final = _FLAT_GROUP['propertyNames']['pattern']
_GROUP: Final = {
    **_FLAT_GROUP,
    'propertyNames': {'pattern': f'{_PATTERN}|^alternatives$'},
    'properties': {
        'alternatives': {
            'description': 'Since microversion 2.6: groups that may be used instead '
            'of this one, in the order of preference.',
            'type': 'array',
            'maxItems': 7,
            'items': _FLAT_GROUP,
        }
    },
}

CREATE: Final = Schema(
    {
        'type': 'array',
        'minItems': 1,
        'maxItems': 100,  # one before 2.4
        'items': {
            'type': 'object',
            'required': ['name'],  # the grammar refuses a profile without groups
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
                'op': {
                    'enum': ['add', 'replace']
                },  # both set an existing path (RFC 6902)
                'path': {'type': 'string'},
            },
        },
        'examples': [[{'op': 'replace', 'path': '/enabled', 'value': False}]],
    },
    is_patch=True,
)

_FIELDS: Final = ('name', 'description', 'groups', 'enabled', 'is_public')

CHANGES: Final = Schema(
    {'items': {'properties': {'path': {'enum': [f'/{name}' for name in _FIELDS]}}}}
)
"""Schema of what a JSON Patch (RFC 6902) changes."""

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
