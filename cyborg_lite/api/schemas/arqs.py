# SPDX-License-Identifier: Apache-2.0
"""Schemas of ARQ bodies; ``arq_patch.py`` checks the content of a patch."""

from typing import Final

from cyborg_lite.api.call.validation import Schema

# Clients send additional keys; microversions below 2.4 ignore them.
CREATE: Final = Schema(
    {
        'type': 'object',
        'required': ['device_profile_name'],
        'properties': {
            'device_profile_name': {'type': 'string'},
            'image_uuid': {
                'description': 'Since 2.4: the image of the instance. Its accel: '
                'properties are added to the groups of the device profile.'
            },
        },
        'examples': [{'device_profile_name': 'fpga-sha256'}],
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
        'examples': [
            {
                '5c9a477a-d3d4-426a-9e9c-b2660917780e': [
                    {'op': 'add', 'path': '/hostname', 'value': 'compute-1'},
                    {
                        'op': 'add',
                        'path': '/device_rp_uuid',
                        'value': '853f07a6-19de-3dd6-b9f6-6c782daa3f7b',
                    },
                    {
                        'op': 'add',
                        'path': '/instance_uuid',
                        'value': 'e6463ae6-ef41-41b7-b171-95f3754f140f',
                    },
                ]
            }
        ],
    }
)
