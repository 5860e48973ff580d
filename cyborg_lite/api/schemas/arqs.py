# SPDX-License-Identifier: Apache-2.0
"""Bodies about accelerator requests. What a patch may do is in ``arq_patch.py``."""

from typing import Final

from cyborg_lite.api.validation import Schema

# Clients send more than the name, and have always been ignored.
CREATE: Final = Schema(
    {
        'type': 'object',
        'required': ['device_profile_name'],
        'properties': {'device_profile_name': {'type': 'string'}},
    }
)

PATCH: Final = Schema(
    {
        'type': 'object',
        'minProperties': 1,
        'additionalProperties': {
            'type': 'array',
            'minItems': 1,
            'items': {
                'type': 'object',
                'required': ['op', 'path'],
                'properties': {
                    'op': {'enum': ['add', 'remove']},
                    'path': {'type': 'string'},
                },
            },
        },
    }
)
