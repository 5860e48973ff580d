# SPDX-License-Identifier: Apache-2.0
"""The bodies of errors, for the API document. ``api/errors.py`` writes them."""

from typing import Any, Final

_TEXT: Final = {'type': 'string'}


def _object(**fields: Any) -> dict[str, Any]:
    """All of these fields, and no other; JSON."""
    return {
        'type': 'object',
        'required': list(fields),
        'properties': fields,
        'additionalProperties': False,
    }


ERROR: Final = _object(
    error_message={
        'type': 'string',
        'description': 'JSON as text; clients of version 2 read it.',
        'contentMediaType': 'application/json',
        'contentSchema': _object(
            faultcode={'enum': ['Client', 'Server']},
            faultstring=_TEXT,
            debuginfo={'type': 'null'},
        ),
    },
    errors={
        'type': 'array',
        'minItems': 1,
        'maxItems': 1,
        'items': _object(
            status={'type': 'integer', 'minimum': 400, 'maximum': 599},
            title=_TEXT,
            detail=_TEXT,
            request_id=_TEXT,
        ),
    },
)

UNAUTHORIZED: Final = {
    'description': 'As the Keystone middleware says it.',
    **_object(error=_object(code={'const': 401}, title=_TEXT, message=_TEXT)),
}
