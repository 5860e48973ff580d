# SPDX-License-Identifier: Apache-2.0
"""Grammar of selectors: converts the text to an expression or raises an error.

    expression  = conjunction {"or" conjunction}
    conjunction = negation {"and" negation}
    negation    = "not" negation | "(" expression ")" | comparison
    comparison  = attribute [operator literal | ["not"] "in" list]
    operator    = "==" | "!=" | "<" | "<=" | ">" | ">="
    list        = "[" literal {"," literal} "]"
    attribute   = "device." name
    literal     = integer [unit] | string | "true" | "false"

A string is in single or double quotes and has no escapes. An attribute without an
operator is compared with true.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from cyborg_lite.errors.profiles import InvalidSelector
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    AttributeType,
    list_units,
    parse_version,
)
from cyborg_lite.model.profiles.selectors import (
    Combination,
    Comparison,
    Expression,
    Literal,
    Negation,
    Selector,
    list_comparisons,
    name_trait,
)

MAX_LENGTH: Final = 1024  # characters
MAX_DEPTH: Final = 16  # of parentheses and of negations
MAX_LITERALS: Final = 64  # of a list

_PREFIX: Final = 'device.'
_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<attribute>device\.[A-Za-z0-9_]*)
    |(?P<number>-?[0-9]+)(?P<unit>[A-Za-z]+(?:/[A-Za-z]+)?)?
    |(?P<string>'[^']*'|"[^"]*")
    |(?P<sign>==|!=|<=|>=|<|>|\(|\)|\[|\]|,)
    |(?P<word>[A-Za-z_][A-Za-z0-9_.]*)""",
    re.VERBOSE,
)
_ORDERS: Final = frozenset({'<', '<=', '>', '>='})
_OPERATORS: Final = _ORDERS | {'==', '!='}
_BOOLEANS: Final = {'true': True, 'false': False}
_MAX_DIGITS: Final = 18
_EXCERPT: Final = 20  # characters that an error shows


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # attribute, number, string, sign, word or end
    text: str
    position: int
    unit: str = ''


@functools.lru_cache(maxsize=4096)
def parse_selector(text: str) -> Selector:
    """Return the selector of a text. Names and types are not checked.

    :raises InvalidSelector: the text is not a selector; the error names the character
    """
    if len(text) > MAX_LENGTH:
        reason = f'it has more than {MAX_LENGTH} characters'
        raise InvalidSelector(position=MAX_LENGTH + 1, reason=reason)
    tokens = _split(text)
    expression = _Parser(text, tokens).parse()
    return Selector(text, expression, name_trait(item.text for item in tokens))


def check_selector(
    selector: Selector, declarations: Iterable[AttributeDeclaration]
) -> None:
    """Check names and types of a selector against the declared attributes.

    :raises InvalidSelector: a name is unknown, or a literal does not fit its type; the
        error names the character and what is allowed
    """
    declared: dict[str, list[AttributeDeclaration]] = {}
    for declaration in declarations:
        declared.setdefault(declaration.name, []).append(declaration)
    for comparison in list_comparisons(selector.expression):
        candidates = declared.get(comparison.name)
        if candidates is None:
            names = ', '.join(sorted(declared))
            reason = f'no driver declares {comparison.name}; declared are {names}'
            _fail(selector.text, comparison.position, reason)
        for literal in comparison.literals:
            faults = [_find_fault(comparison, literal, item) for item in candidates]
            if None not in faults:
                _fail(selector.text, literal.position, str(faults[0]))


def _find_fault(
    comparison: Comparison, literal: Literal, declaration: AttributeDeclaration
) -> str | None:
    """Return why a literal cannot be compared with a declared attribute, or None."""
    if declaration.type is AttributeType.INTEGER:
        return _find_number_fault(literal, declaration)
    if declaration.type is AttributeType.VERSION:
        text = literal.value if isinstance(literal.value, str) else ''
        if parse_version(text) is None:
            return f"{declaration} is compared with a version in quotes, as '550.54'"
        return None
    if comparison.operator in _ORDERS:
        return f'{declaration} has no order; use ==, != or in'
    is_text = declaration.type is AttributeType.STRING
    if type(literal.value) is not (str if is_text else bool):
        example = 'a string in quotes' if is_text else 'true or false'
        return f'{declaration} is compared with {example}'
    return None


def _find_number_fault(
    literal: Literal, declaration: AttributeDeclaration
) -> str | None:
    if type(literal.value) is not int:
        return f'{declaration} is compared with a number'
    units = list_units(declaration.unit)
    if literal.unit and literal.unit not in units:
        allowed = f'known are {", ".join(units)}' if units else 'it has no unit'
        return f'the unit {literal.unit} does not fit {declaration}; {allowed}'
    return None


def _split(text: str) -> tuple[_Token, ...]:
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            is_open = text[position] in '\'"'
            reason = 'the string has no end' if is_open else 'it is not expected here'
            _fail(text, position, reason)
        if match.lastgroup != 'space':
            kind = 'number' if match.lastgroup == 'unit' else str(match.lastgroup)
            unit = match['unit'] or ''
            tokens.append(_Token(kind, match[0], position, unit))
        position = match.end()
    return tuple(tokens)


def _fail(text: str, position: int, reason: str) -> NoReturn:
    excerpt = text[position : position + _EXCERPT]
    place = f'at {excerpt!r}' if excerpt else 'at the end'
    raise InvalidSelector(position=position + 1, reason=f'{place}: {reason}')


class _Parser:
    """A recursive descent over the tokens of one text."""

    def __init__(self, text: str, tokens: Sequence[_Token]) -> None:
        self._text = text
        self._tokens = (*tokens, _Token('end', '', len(text)))
        self._index = 0
        self._depth = 0

    def parse(self) -> Expression:
        """Return the expression of the whole text."""
        expression = self._parse_alternatives()
        if self._token.kind != 'end':
            self._fail("'and', 'or' or the end is expected")
        return expression

    @property
    def _token(self) -> _Token:
        return self._tokens[self._index]

    def _accepts(self, text: str) -> bool:
        """Consume a word or a sign if it is next; return whether it was."""
        token = self._token
        if token.kind in ('word', 'sign') and token.text == text:
            self._index += 1
            return True
        return False

    def _fail(self, reason: str, token: _Token | None = None) -> NoReturn:
        _fail(self._text, (token or self._token).position, reason)

    def _descend(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(f'the expression is nested more than {MAX_DEPTH} times')

    def _parse_alternatives(self) -> Expression:
        operands = [self._parse_conjunction()]
        while self._accepts('or'):
            operands.append(self._parse_conjunction())
        return operands[0] if len(operands) == 1 else Combination('or', (*operands,))

    def _parse_conjunction(self) -> Expression:
        operands = [self._parse_negation()]
        while self._accepts('and'):
            operands.append(self._parse_negation())
        return operands[0] if len(operands) == 1 else Combination('and', (*operands,))

    def _parse_negation(self) -> Expression:
        if self._accepts('not'):
            self._descend()
            operand = self._parse_negation()
            self._depth -= 1
            return Negation(operand)
        if self._accepts('('):
            self._descend()
            expression = self._parse_alternatives()
            if not self._accepts(')'):
                self._fail("')' is expected")
            self._depth -= 1
            return expression
        return self._parse_comparison()

    def _parse_comparison(self) -> Expression:
        token = self._token
        if token.kind != 'attribute' or token.text == _PREFIX:
            self._fail('an attribute such as device.memory_mib is expected')
        self._index += 1
        name, position = token.text.removeprefix(_PREFIX), token.position
        if self._token.kind == 'sign' and self._token.text in _OPERATORS:
            operator = self._token.text
            self._index += 1
            return Comparison(name, operator, (self._parse_literal(),), position)
        if self._accepts('in'):
            return Comparison(name, 'in', self._parse_list(), position)
        if self._accepts('not'):
            if not self._accepts('in'):
                self._fail("'in' is expected")
            return Negation(Comparison(name, 'in', self._parse_list(), position))
        return Comparison(name, '==', (Literal(True, position),), position)

    def _parse_list(self) -> tuple[Literal, ...]:
        if not self._accepts('['):
            self._fail("'[' is expected")
        literals = [self._parse_literal()]
        while self._accepts(','):
            literals.append(self._parse_literal())
            if len(literals) > MAX_LITERALS:
                self._fail(f'the list has more than {MAX_LITERALS} values')
        if not self._accepts(']'):
            self._fail("',' or ']' is expected")
        return tuple(literals)

    def _parse_literal(self) -> Literal:
        token = self._token
        if token.kind == 'string':
            self._index += 1
            return Literal(token.text[1:-1], token.position)
        if token.kind == 'word' and token.text in _BOOLEANS:
            self._index += 1
            return Literal(_BOOLEANS[token.text], token.position)
        if token.kind != 'number':
            self._fail('a number, a string in quotes, true or false is expected')
        digits = token.text.removesuffix(token.unit)
        if len(digits.removeprefix('-')) > _MAX_DIGITS:
            self._fail(f'the number has more than {_MAX_DIGITS} digits')
        self._index += 1
        return Literal(int(digits), token.position, token.unit)
