# SPDX-License-Identifier: Apache-2.0
"""JSON Patch (RFC 6902): apply a list of operations to the JSON of an object."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import jsonpatch
import jsonpointer

from cyborg_lite.api.call import json_body
from cyborg_lite.api.call.validation import Schema
from cyborg_lite.errors.requests import InvalidBody, InvalidJsonPatch, PatchTestFailed
from cyborg_lite.model.text import format_value

# Characters of the JSON of an object, which `copy` may double.
_MAX_LENGTH: Final = 262_144

# RFC 6901, section 3.
_POINTER: Final = {
    'type': 'string',
    'maxLength': 1024,
    'pattern': '^(/([^/~]|~[01])*)*$',
}
_WITH_VALUE: Final = ('add', 'replace', 'test')
_WITH_FROM: Final = ('move', 'copy')
# Members of an operation that name a place that it changes; others: `path`.
_WRITTEN: Final[dict[str, tuple[str, ...]]] = {'test': (), 'move': ('path', 'from')}


def _require(operations: Collection[str], member: str) -> dict[str, Any]:
    return {
        'if': {'properties': {'op': {'enum': list(operations)}}},
        'then': {'required': [member]},
    }


SCHEMA: Final = Schema(
    {
        'type': 'array',
        'maxItems': 100,
        'items': {
            'type': 'object',
            'required': ['op', 'path'],
            'properties': {
                'op': {'enum': [*_WITH_VALUE, *_WITH_FROM, 'remove']},
                'path': _POINTER,
                'from': _POINTER,
            },
            'allOf': [_require(_WITH_VALUE, 'value'), _require(_WITH_FROM, 'from')],
        },
    }
)
"""Schema of a JSON Patch of any object."""


# Any: JSON.
def list_fields(operations: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the fields that the operations read or change."""
    keys = ('path', 'from')
    return _name_fields(item[key] for item in operations for key in keys if key in item)


def find_changes(
    operations: Sequence[Mapping[str, Any]], document: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    """Return the values of the fields of an object that a JSON Patch changes.

    A field that an operation names is changed, even to its present value. The value of
    a removed field is None.

    :param operations: match ``SCHEMA``
    :param document: the object; it is not changed
    :param depth: maximum nesting of the result
    :raises InvalidJsonPatch: an operation cannot be applied
    :raises PatchTestFailed: the operation ``test`` finds another value
    """
    result = json.loads(json.dumps(document))
    for index, operation in enumerate(operations):
        result = _apply(index, operation, result)
        _check_size(index, operation, result, depth)
    fields = _name_fields(
        item[key] for item in operations for key in _WRITTEN.get(item['op'], ('path',))
    )
    return {
        field: result.get(field)
        for field in (document | result)
        if field in fields or _differ(document.get(field), result.get(field))
    }


def build_replacements(
    changes: Mapping[str, Any], schema: Schema, operations: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Return one operation ``replace`` for each changed field; they match the schema.

    :param operations: that have led to the changes
    :raises InvalidJsonPatch: a field cannot be changed, or has an invalid value
    """
    replacements = [
        {'op': 'replace', 'path': f'/{field}', 'value': value}
        for field, value in changes.items()
    ]
    try:
        if replacements:
            schema.check(replacements)
    except InvalidBody as error:
        # The error is about the replacements, which the client has not sent.
        index, key, *steps = f'{error.kwargs["pointer"]}//'[1:].split('/')
        if not index:
            raise
        field = list(changes)[int(index)]
        last = max(
            number
            for number, item in enumerate(operations)
            if not item['path'] or field in list_fields([item])
        )
        reason = 'cannot be changed'
        if key == 'value':
            reason = str(error.kwargs['violation'])
        place = format_value('/'.join(['', field, *filter(None, steps)]))
        pointer = f'/{last}/path'
        raise InvalidJsonPatch(place=place, reason=reason, pointer=pointer) from None
    return replacements


def _apply(index: int, operation: Mapping[str, Any], document: Any) -> Any:
    """Return the changed document."""
    try:
        patch = jsonpatch.JsonPatch([operation])
        result = patch.apply(document, in_place=True)
    except jsonpatch.JsonPatchTestFailed:
        path, pointer = _format_pointer(operation['path']), f'/{index}/path'
        raise PatchTestFailed(path=path, pointer=pointer) from None
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        reason = 'the object has no such place'
        raise _refuse(index, operation, reason) from None
    if not isinstance(result, dict):
        raise _refuse(index, operation, 'the result must be an object')
    return result


def _check_size(
    index: int, operation: Mapping[str, Any], result: Any, depth: int
) -> None:
    """Check that the result is not too large. Operations may enlarge it repeatedly."""
    if json_body.is_deeper(result, depth):
        reason = f'the result is nested deeper than {depth} levels'
        raise _refuse(index, operation, reason)
    if operation['op'] == 'copy' and len(json.dumps(result)) > _MAX_LENGTH:
        reason = f'the result has more than {_MAX_LENGTH} characters'
        raise _refuse(index, operation, reason)


def _refuse(index: int, operation: Mapping[str, Any], reason: str) -> InvalidJsonPatch:
    words = [operation['op'], _format_pointer(operation['path'])]
    if operation['op'] in _WITH_FROM:
        words += ['from', _format_pointer(operation['from'])]
    return InvalidJsonPatch(
        place=' '.join(words), reason=reason, pointer=f'/{index}/path'
    )


def _format_pointer(pointer: str) -> str:
    return format_value(pointer) if pointer else 'the object'


def _name_fields(pointers: Iterable[str]) -> frozenset[str]:
    parts = (jsonpointer.JsonPointer(pointer).parts for pointer in pointers)
    return frozenset(part[0] for part in parts if part)


def _differ(before: Any, after: Any) -> bool:
    """Return True if two values differ; in Python, unlike in JSON, True equals 1."""
    first, second = (json.dumps(item, sort_keys=True) for item in (before, after))
    return first != second
