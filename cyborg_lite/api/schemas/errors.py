# SPDX-License-Identifier: Apache-2.0
"""Schemas of error bodies, for the API document; ``api/errors.py`` writes them."""

from typing import Any, Final

_TEXT: Final = {'type': 'string'}


def _build_object(**fields: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields."""
    return {
        'type': 'object',
        'required': list(fields),
        'properties': fields,
        'additionalProperties': False,
    }


ERROR: Final = _build_object(
    error_message={
        'type': 'string',
        'description': 'JSON as text, for clients of version 2.',
        'contentMediaType': 'application/json',
        'contentSchema': _build_object(
            faultcode={'enum': ['Client', 'Server']},
            faultstring=_TEXT,
            debuginfo={'type': 'null'},
        ),
    },
    errors={
        'type': 'array',
        'minItems': 1,
        'maxItems': 1,
        'items': _build_object(
            status={'type': 'integer', 'minimum': 400, 'maximum': 599},
            title=_TEXT,
            detail=_TEXT,
            request_id=_TEXT,
        ),
    },
)

UNAUTHORIZED: Final = {
    'description': 'Error of the Keystone middleware.',
    **_build_object(
        error=_build_object(code={'const': 401}, title=_TEXT, message=_TEXT)
    ),
}
