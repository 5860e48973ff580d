# SPDX-License-Identifier: Apache-2.0
"""Schemas of device bodies."""

from collections.abc import Sequence
from typing import Any, Final

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

_QUARANTINE: Final = {
    'type': ['object', 'null'],
    'additionalProperties': False,
    'properties': {
        'reason': {'type': 'string', 'maxLength': 200},
        'name': {'type': 'string', 'maxLength': 40},
    },
}
_STATUS: Final = [
    {'op': 'replace', 'path': '/status', 'value': 'maintaining'},
    {'op': 'add', 'path': '/reason', 'value': 'The fan is being replaced.'},
]
_TEXT: Final = {'type': 'string', 'maxLength': 255}


# Any: JSON.
def _describe_changes(
    paths: Sequence[str], examples: Sequence[Any], **rules: Any
) -> Schema:
    """Return the schema of one or two changes.

    :param rules: further keywords of the schema of a change
    """
    properties = {'op': {'enum': ['add', 'replace']}, 'path': {'enum': paths}}
    properties |= rules.pop('properties', {})
    items = {'type': 'object', 'required': ['op', 'path', 'value']}
    return Schema(
        {
            'type': 'array',
            'minItems': 1,
            'maxItems': 2,
            'items': {**items, 'properties': properties, **rules},
            'examples': examples,
        },
        is_patch=True,
    )


PATCH_STATUS: Final = _describe_changes(
    ['/status', '/reason'], [_STATUS], properties={'value': _TEXT}
)
"""Changes of all devices of a host."""

PATCH: Final = _describe_changes(
    ['/status', '/reason', '/mode', '/configuration', '/quarantine'],
    [
        _STATUS,
        [{'op': 'replace', 'path': '/mode', 'value': 'sym;asym'}],
        [
            {
                'op': 'add',
                'path': '/quarantine',
                'value': {'reason': 'It is hot.', 'name': 'Ada'},
            }
        ],
        [
            {
                'op': 'replace',
                'path': '/configuration',
                'value': {'set': 'nvidia', 'settings': {'vgpus': 4}},
            }
        ],
    ],
    **{
        'if': {'properties': {'path': {'const': '/configuration'}}},
        'then': {'properties': {'value': _CONFIGURATION}},
        'else': {
            'if': {'properties': {'path': {'const': '/quarantine'}}},
            'then': {'properties': {'value': _QUARANTINE}},
            'else': {'properties': {'value': _TEXT}},
        },
    },
)
