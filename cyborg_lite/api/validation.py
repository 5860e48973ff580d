# SPDX-License-Identifier: Apache-2.0
"""Bodies against JSON Schema, with messages that name the field."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.text import shown

Document = Mapping[str, Any]  # JSON

_WORDINGS: Final = {
    'type': 'must be of type {}',
    'enum': 'must be {}',
    'const': 'must be {}',
    'minItems': 'must have at least {} elements',
    'maxItems': 'must have at most {} elements',
    'minProperties': 'must have at least {} keys',
    'minLength': 'must have at least {} characters',
    'maxLength': 'must have at most {} characters',
    'pattern': 'must match {}',
}


# Any: these are as the library, which is untyped here, calls them.
def _pattern(_all: Any, wanted: str, found: Any, _schema: Any) -> Iterator[Any]:
    # To JSON Schema the end is the end; to Python it is also before a last newline.
    expression = wanted.replace('$', r'\Z')
    if isinstance(found, str) and not re.search(expression, found):
        yield ValidationError('does not match')


# What depends on the names of keys is for readers of the API document alone: whoever
# interprets the keys says better what is wrong with them.
_Validator: Final[Any] = validators.extend(  # type: ignore[no-untyped-call]  # likewise
    Draft202012Validator,
    {'pattern': _pattern, 'propertyNames': None, 'patternProperties': None},
)


class Schema:
    """What a body must look like; compiled once."""

    def __init__(self, document: Document, *, optional: bool = False) -> None:
        """:param optional: there may be no body at all"""
        Draft202012Validator.check_schema(document)
        self.document = document
        self.optional = optional
        self._validator = _Validator(document)

    def check(self, body: Any) -> None:
        """:raises InvalidInput: naming the place in the body and what is wrong there"""
        # The first is enough; a long list can be wrong in every element.
        error = next(self._validator.iter_errors(body), None)
        if error is not None:
            raise InvalidInput(reason=f'{_place(error.absolute_path)} {_said(error)}.')


def _place(path: Iterable[str | int]) -> str:
    steps = [f'[{step}]' if isinstance(step, int) else f'.{step}' for step in path]
    return shown(''.join(steps).removeprefix('.') or 'The request body')


def _said(error: ValidationError) -> str:
    """What is wanted there. The library's own words repeat the whole value."""
    wanted: Any = error.validator_value  # of the type that the keyword has
    if error.validator == 'required' and isinstance(error.instance, dict):
        missing = [name for name in wanted if name not in error.instance]
        return f'lacks {", ".join(missing)}'
    wording = _WORDINGS.get(str(error.validator), 'breaks a rule of the schema')
    return wording.format(' or '.join(wanted) if isinstance(wanted, list) else wanted)
