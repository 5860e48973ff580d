# SPDX-License-Identifier: Apache-2.0
"""Schemas of error bodies, for the API document; ``api/errors.py`` writes them."""

from collections.abc import Collection
from typing import Any, Final

from cyborg_lite.errors import registry

_TEXT: Final = {'type': 'string'}


def _build_object(optional: Collection[str] = (), **fields: Any) -> dict[str, Any]:
    """Return the schema of an object with exactly these fields."""
    return {
        'type': 'object',
        'required': [name for name in fields if name not in optional],
        'properties': fields,
        'additionalProperties': False,
    }


_FAULT: Final = {
    'type': 'string',
    'description': 'JSON as text, for clients of version 2.',
    'contentMediaType': 'application/json',
    'contentSchema': _build_object(
        faultcode={'enum': ['Client', 'Server']},
        faultstring=_TEXT,
        debuginfo={'type': 'null'},
    ),
}
_FIELDS: Final = {
    'status': {'type': 'integer', 'minimum': 400, 'maximum': 599},
    'title': _TEXT,
    'detail': _TEXT,
    'request_id': _TEXT,
}
_SINCE_2_5: Final = {
    'code': {'enum': list(registry.list_errors())},
    'links': {
        'type': 'array',
        'items': _build_object(rel={'const': 'help'}, href=_TEXT),
    },
    'pointer': {
        'type': 'string',
        'description': 'JSON pointer of the bad value in the body of the request.',
    },
}


def build_error(*, has_code: bool | None) -> dict[str, Any]:
    """Return the schema of an error body.

    :param has_code: True: since microversion 2.5; None: any microversion
    """
    optional = ['pointer'] if has_code else [*_SINCE_2_5]
    fields = _FIELDS if has_code is False else {**_FIELDS, **_SINCE_2_5}
    items = _build_object(optional, **fields)
    errors = {'type': 'array', 'minItems': 1, 'maxItems': 1, 'items': items}
    return _build_object(error_message=_FAULT, errors=errors)


def describe_codes() -> dict[str, dict[str, Any]]:
    """Return status, cause and remedy of each error code."""
    return {
        code: {
            'status': kind.code,
            'cause': registry.describe_cause(kind),
            'remedy': kind.advice,
        }
        for code, kind in registry.list_errors().items()
    }


UNAUTHORIZED: Final = {
    'description': 'Error of the Keystone middleware.',
    **_build_object(
        error=_build_object(code={'const': 401}, title=_TEXT, message=_TEXT)
    ),
}
