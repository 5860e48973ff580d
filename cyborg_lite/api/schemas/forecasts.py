# SPDX-License-Identifier: Apache-2.0
"""Schema of changes of hardware; ``forecast_body`` checks how keys combine."""

from typing import Any, Final

from cyborg_lite.api.schemas.device_profiles import CREATE
from cyborg_lite.api.validation import Schema

_TEXT: Final = {'type': 'string', 'minLength': 1, 'maxLength': 255}
_GROUPS: Final = CREATE.document['items']['properties']['groups']

_CHANGE: Final[dict[str, Any]] = {
    'type': 'object',
    'description': 'A device with a mode, a device with remove, or new devices: a '
    'hostname with resources.',
    'properties': {
        'device': {'type': 'string', 'format': 'uuid'},
        'mode': {**_TEXT, 'description': 'The name of a mode of the device.'},
        'remove': {'const': True, 'description': 'The device is removed.'},
        'hostname': _TEXT,
        'resources': {
            'type': 'object',
            'description': 'The units of each new device, by resource class.',
            'minProperties': 1,
            'maxProperties': 8,
            'additionalProperties': {
                'type': 'integer',
                'minimum': 1,
                'maximum': 65536,
            },
        },
        'traits': {
            'type': 'array',
            'maxItems': 100,
            'items': {'type': 'string', 'pattern': '^[A-Z0-9_]{1,255}$'},
        },
        'attributes': {
            'type': 'object',
            'description': 'Typed attributes that selectors compare, by name. An '
            'integer is in the unit of the attribute.',
            'maxProperties': 64,
            'additionalProperties': {'type': ['integer', 'string', 'boolean']},
        },
        'attach_handle_type': {'enum': ['PCI', 'MDEV'], 'default': 'PCI'},
        'count': {
            'type': 'integer',
            'description': 'The number of equal new devices.',
            'minimum': 1,
            'maximum': 100,
            'default': 1,
        },
    },
    'additionalProperties': False,
}

FORECAST: Final = Schema(
    {
        'type': 'object',
        'required': ['changes'],
        'properties': {
            'changes': {'type': 'array', 'maxItems': 100, 'items': _CHANGE},
            'profiles': {
                'type': 'array',
                'description': 'Names or uuids of device profiles. Default: all.',
                'maxItems': 100,
                'items': _TEXT,
            },
            'groups': {
                **_GROUPS,
                'description': 'The groups of a device profile that does not exist.',
            },
        },
        'additionalProperties': False,
        'examples': [
            {
                'changes': [
                    {
                        'hostname': 'compute-1',
                        'resources': {'PGPU': 1},
                        'traits': ['CUSTOM_NVIDIA_1EB8'],
                        'attributes': {'memory_mib': 16384},
                        'count': 2,
                    }
                ],
                'profiles': ['gpu-t4'],
            }
        ],
    }
)
