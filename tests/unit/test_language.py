# SPDX-License-Identifier: Apache-2.0
"""Language of the code base: names, docstrings, test names, release notes, words.

The measures count; a person decides whether a sentence is clear. Each test lists the
offenders with file and line.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeGuard

import pytest

from tests.support.sources import (
    PACKAGE,
    ROOT,
    TREES,
    Source,
    list_functions,
    read_all_sources,
    read_source,
    read_sources,
)

MAX_TEST_WORDS: Final = 9
SLUG_WORDS: Final = range(2, 6)
DOCUMENTED_PACKAGES: Final = ('api', 'clients', 'drivers', 'model', 'rpc')

PRONOUNS: Final = """
    one ones each every other others those these they them that this it its what which
    who whom whose where why how mine ours theirs both either rest same then here there
    nothing nobody everything something anything thing things piece pieces
"""
PARTICIPLES: Final = """
    asked begun done ended found given gone held kept known left made meant named
    offered said seen settled shown taken told wanted sent lost heard
"""
ADJECTIVES: Final = """
    again alive away back dead few fewer many more most right silent strange stranger
    strangers whole wrong
"""
OPENINGS: Final = """
    all any as both by each every false for from how if in it its nobody none nothing
    of on one only so that their there these they those to true until what whatever
    when where whether which who whom whose why with without
"""
FORBIDDEN_NAMES: Final = frozenset((PRONOUNS + PARTICIPLES + ADJECTIVES).split())
FORBIDDEN_OPENINGS: Final = frozenset(OPENINGS.split())
# Fields that travel by RPC.
MESSAGE_FIELDS: Final = frozenset({('cyborg_lite/model/hosts/events.py', 'lost')})
BANNED_WORDS: Final = re.compile(
    r'\b(carved|figures|finding|pulse|stranger|verdict|vitals|wishes)\b', re.IGNORECASE
)
LOG_METHODS: Final = frozenset(
    {'debug', 'info', 'warning', 'error', 'exception', 'critical', 'log'}
)

# English words that look like a participle, but are not one.
_OTHER_WORDS: Final = frozenset(
    {'children', 'embed', 'feed', 'listen', 'need', 'open', 'seed', 'speed', 'token'}
)
_PARTICIPLE: Final = re.compile(r'[a-z]+(?:ed|en)|[a-z]*(?:held|kept|lost|told)')
_NOTE: Final = re.compile(r'(?P<slug>.+)-[0-9a-f]{16}\.yaml')
# Literals in documents may be names of fields that clients know.
_LITERAL: Final = re.compile(r'``[^`]*``')
_FIRST_WORD: Final = re.compile(r'[`"]*([\w:]+)')


def list_bindings(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the variables, parameters and attributes that a tree binds."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name):
                yield node, name
            case ast.Name(id=name, ctx=ast.Store()):
                yield node, name
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield node, name
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield node, name


def list_docstrings(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the docstrings of modules, classes and functions with their nodes."""
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ):
            docstring = ast.get_docstring(node)
            if docstring:
                yield node, docstring


def has_forbidden_opening(docstring: str) -> bool:
    """Check whether a docstring starts with a relative word or with a field."""
    word = _FIRST_WORD.match(docstring.lower())
    return word is not None and (
        word[1] in FORBIDDEN_OPENINGS or word[1].startswith(':')
    )


def is_bare_participle(name: str) -> bool:
    """Check whether a function is named without a verb, like ``settled``."""
    word = name.lstrip('_')
    return word in FORBIDDEN_NAMES or (
        word not in _OTHER_WORDS and _PARTICIPLE.fullmatch(word) is not None
    )


def list_bases(definition: ast.ClassDef) -> list[str]:
    """Return the names of the other bases, without module and type parameters."""
    texts = (ast.unparse(base).partition('[')[0] for base in definition.bases)
    names = [text.rpartition('.')[2] for text in texts]
    return [name for name in names if name != definition.name]


def list_contracts(classes: Iterable[ast.ClassDef]) -> Mapping[str, frozenset[str]]:
    """Return by class the methods that its bases, or any protocol, document."""
    by_name = {definition.name: definition for definition in classes}

    def list_inherited(name: str) -> frozenset[str]:
        bases = [base for base in list_bases(by_name[name]) if base in by_name]
        return frozenset().union(*map(list_documented, bases))

    def list_documented(name: str) -> frozenset[str]:
        own = {item.name for item in by_name[name].body if has_docstring(item)}
        return list_inherited(name) | own

    protocols = [n for n, item in by_name.items() if 'Protocol' in list_bases(item)]
    common = frozenset[str]().union(*map(list_documented, protocols))
    return {name: common | list_inherited(name) for name in by_name}


def has_docstring(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    """Check whether a node is a function with a docstring."""
    return isinstance(node, ast.FunctionDef) and bool(ast.get_docstring(node))


def list_public_definitions(
    body: Iterable[ast.stmt], contracts: Mapping[str, frozenset[str]]
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield public classes, their own public methods and public functions of a module.

    :param contracts: by class the methods that something else documents
    """
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
            yield node
            documented = contracts[node.name]
            for item in list_public_definitions(node.body, contracts):
                if item.name not in documented:
                    yield item
        elif isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef
        ) and not node.name.startswith('_'):
            yield node


def read_text_files(folder: Path, pattern: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield name and lines of the files below a folder."""
    for path in sorted(folder.rglob(pattern)):
        yield str(path.relative_to(ROOT)), path.read_text().splitlines()


def list_log_formats(source: Source) -> Iterator[tuple[ast.AST, str]]:
    """Yield the format strings of calls like ``LOG.warning('...', name)``."""
    for node in ast.walk(source.tree):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id='LOG'), attr=method),
                args=[*arguments],
            ) if method in LOG_METHODS:
                for argument in arguments:
                    yield from list_strings(argument)


def list_strings(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the string constants below a node."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node, node.value


def join_lines(offenders: Iterable[str]) -> str:
    """Return one offender per line, for the message of an assertion."""
    return '\n' + '\n'.join(offenders)


@pytest.mark.parametrize('tree', TREES)
def test_names_are_nouns_not_pronouns_or_participles(tree: str) -> None:
    offenders = [
        f'{source.locate(node)}: {name}'
        for source in read_sources(tree)
        for node, name in list_bindings(source.tree)
        if name.strip('_') in FORBIDDEN_NAMES
        and (source.name, name) not in MESSAGE_FIELDS
    ]
    assert not offenders, 'name the object instead:' + join_lines(offenders)


@pytest.mark.parametrize('tree', TREES)
def test_docstrings_open_with_verb_or_noun(tree: str) -> None:
    offenders = [
        f'{source.locate(node)}: {docstring.splitlines()[0]}'
        for source in read_sources(tree)
        for node, docstring in list_docstrings(source.tree)
        if has_forbidden_opening(docstring)
    ]
    assert not offenders, 'start with an imperative verb, or with a noun:' + join_lines(
        offenders
    )


def test_functions_are_not_named_by_bare_participles() -> None:
    offenders = [
        f'{source.locate(node)}: {node.name}'
        for source in read_all_sources()
        for node in list_functions(source.tree)
        if is_bare_participle(node.name)
    ]
    assert not offenders, 'name it by a verb and an object:' + join_lines(offenders)


@pytest.mark.parametrize('package', DOCUMENTED_PACKAGES)
def test_public_definitions_have_docstrings(package: str) -> None:
    """A method that a base or a protocol documents needs no docstring."""
    sources = read_sources(f'cyborg_lite/{package}')
    nodes = (node for source in sources for node in ast.walk(source.tree))
    contracts = list_contracts(n for n in nodes if isinstance(n, ast.ClassDef))
    offenders = [
        f'{source.locate(node)}: {node.name}'
        for source in sources
        for node in list_public_definitions(source.tree.body, contracts)
        if not ast.get_docstring(node)
    ]
    assert not offenders, 'write a docstring:' + join_lines(offenders)


def test_test_names_are_short() -> None:
    offenders = [
        f'{source.locate(node)}: {node.name}'
        for source in read_sources('tests')
        for node in list_functions(source.tree)
        if node.name.startswith('test_')
        and len(node.name.removeprefix('test_').split('_')) > MAX_TEST_WORDS
    ]
    assert not offenders, (
        f'use at most {MAX_TEST_WORDS} words, test_<unit>_<condition>_<result>:'
        + join_lines(offenders)
    )


def test_release_note_slugs_name_the_change() -> None:
    offenders = []
    for path in sorted((ROOT / 'releasenotes' / 'notes').glob('*.yaml')):
        note = _NOTE.fullmatch(path.name)
        if note is None or len(note['slug'].split('-')) not in SLUG_WORDS:
            offenders.append(str(path.relative_to(ROOT)))
    assert not offenders, 'use two to five words and a uid:' + join_lines(offenders)


def test_operator_text_has_no_banned_words() -> None:
    files = [
        *read_text_files(PACKAGE / 'errors', '*.py'),
        *read_text_files(PACKAGE / 'conf', '*.py'),
        *read_text_files(ROOT / 'doc' / 'source', '*.rst'),
    ]
    offenders = [
        f'{name}:{number}: {word[0]}'
        for name, lines in files
        for number, line in enumerate(lines, 1)
        for word in BANNED_WORDS.finditer(_LITERAL.sub('', line))
    ]
    assert not offenders, 'use the terms of the glossary:' + join_lines(offenders)


def test_log_messages_have_no_banned_words() -> None:
    offenders = [
        f'{source.locate(node)}: {word[0]}'
        for source in read_sources('cyborg_lite')
        for node, text in list_log_formats(source)
        for word in BANNED_WORDS.finditer(text)
    ]
    assert not offenders, 'use the terms of the glossary:' + join_lines(offenders)


@pytest.mark.parametrize(
    ('code', 'names'),
    [
        ('found = 1', ['found']),
        ('def show(self, what: str) -> None: ...', ['what']),
        ('self._held = 1', ['_held']),
        ('for each in rows: ...', ['each']),
        ('try: ...\nexcept OSError as this: ...', ['this']),
        ('match rows:\n  case [first, *rest]: ...', ['rest']),
        ('found_rows = rows.found', []),
    ],
)
def test_forbidden_names_are_recognized(code: str, names: list[str]) -> None:
    bindings = [name for _, name in list_bindings(ast.parse(code))]
    assert [name for name in bindings if name.strip('_') in FORBIDDEN_NAMES] == names


@pytest.mark.parametrize(
    ('docstring', 'forbidden'),
    [
        ('Whether it fits.', True),
        (':raises KeyError: unknown', True),
        ('``None`` without a row.', True),
        ('Return the rows.', False),
        ('Ones and zeros.', False),
    ],
)
def test_forbidden_openings_are_recognized(docstring: str, forbidden: bool) -> None:
    assert has_forbidden_opening(docstring) is forbidden


@pytest.mark.parametrize(
    ('name', 'participle'),
    [
        ('listed', True),
        ('_held', True),
        ('away', True),
        ('list_held', False),
        ('listen', False),
    ],
)
def test_bare_participles_are_recognized(name: str, participle: bool) -> None:
    assert is_bare_participle(name) is participle


def test_log_formats_of_all_arguments_are_read(tmp_path: Path) -> None:
    path = tmp_path / 'module.py'
    path.write_text("LOG.warning('no %s', 'row')\nLOG.name('x')\n")
    assert [text for _, text in list_log_formats(read_source(path))] == ['no %s', 'row']
