# SPDX-License-Identifier: Apache-2.0
"""Validation of bodies by JSON Schema, with messages that name the field."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from cyborg_lite.errors.requests import InvalidBody
from cyborg_lite.model.text import format_value

Document = Mapping[str, Any]  # JSON

JSON_PATCH: Final = 'application/json-patch+json'
"""Media type of a list of changes (RFC 6902, section 6)."""

_WORDINGS: Final = {
    'type': 'must be of type {}',
    'additionalProperties': 'has a key that does not exist',
    'enum': 'must be {}',
    'const': 'must be {}',
    'minItems': 'must have at least {} elements',
    'maxItems': 'must have at most {} elements',
    'minProperties': 'must have at least {} keys',
    'minLength': 'must have at least {} characters',
    'maxLength': 'must have at most {} characters',
    'pattern': 'must match {}',
}


# Any: the library is untyped and passes these arguments by position.
def _check_pattern(
    _validator: Any, pattern: str, value: Any, _schema: Any
) -> Iterator[Any]:
    # In Python, unlike in JSON Schema, $ also matches before a newline at the end.
    expression = pattern.replace('$', r'\Z')
    if isinstance(value, str) and not re.search(expression, value):
        yield ValidationError('does not match')


# The rules for names of keys are only documentation. The code that interprets the keys
# has better error messages.
_Validator: Final[Any] = validators.extend(  # type: ignore[no-untyped-call]  # untyped library
    Draft202012Validator,
    {'pattern': _check_pattern, 'propertyNames': None, 'patternProperties': None},
)


class Schema:
    """Compiled JSON Schema of a request body."""

    def __init__(
        self, document: Document, *, optional: bool = False, is_patch: bool = False
    ) -> None:
        """Compile the schema.

        :param optional: the request may have no body
        :param is_patch: the body is a list of changes (RFC 6902)
        """
        Draft202012Validator.check_schema(document)
        self.document = document
        self.optional = optional
        self.is_patch = is_patch
        self._validator = _Validator(document)

    def check(self, body: Any) -> None:
        """Validate a body.

        :raises InvalidBody: the first violation, with its position in the body
        """
        # One error is enough: a long list may violate the schema in every element.
        error = next(self._validator.iter_errors(body), None)
        if error is not None:
            place = ''.join(
                f'[{step}]' if isinstance(step, int) else f'.{step}'
                for step in error.absolute_path
            ).removeprefix('.')
            raise InvalidBody(
                place=format_value(place or 'The request body'),
                violation=_format_violation(error),
                pointer=_build_pointer(error),
            )


# The path is the whole action; clients send no body, {} or null.
NO_CONTENT: Final = Schema(
    {'type': ['object', 'null'], 'examples': [{}]}, optional=True
)


def _build_pointer(error: ValidationError) -> str:
    """Return the JSON pointer (RFC 6901) of the bad value, or of the bad key."""
    steps = [*error.absolute_path, *_list_missing(error)[:1], *_list_unknown(error)[:1]]
    return ''.join(
        '/' + str(step).replace('~', '~0').replace('/', '~1') for step in steps
    )


def _list_missing(error: ValidationError) -> list[str]:
    """Return the required keys that the object lacks."""
    if error.validator != 'required' or not isinstance(error.instance, dict):
        return []
    required: Any = error.validator_value
    return [name for name in required if name not in error.instance]


def _list_unknown(error: ValidationError) -> list[str]:
    """Return the keys of the object that do not exist."""
    if error.validator != 'additionalProperties' or error.validator_value is not False:
        return []
    schema: Any = error.schema
    body: Any = error.instance
    return [name for name in body if name not in schema['properties']]


def _format_violation(error: ValidationError) -> str:
    """Describe the violated keyword; the library would repeat the whole value."""
    expected: Any = error.validator_value  # the type depends on the keyword
    missing = _list_missing(error)
    if missing:
        return f'lacks {", ".join(missing)}'
    wording = _WORDINGS.get(str(error.validator), 'violates the schema')
    words = expected if isinstance(expected, list) else [expected]
    texts = (word if isinstance(word, str) else json.dumps(word) for word in words)
    return wording.format(' or '.join(texts))
