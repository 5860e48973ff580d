# SPDX-License-Identifier: Apache-2.0
"""Writes doc/source/api-reference.rst from the API document and its samples.

``tox run -e genapi`` runs it; a test compares its result with what is there.
"""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast

from cyborg_lite.api import microversion
from cyborg_lite.api.controllers.root import Root
from cyborg_lite.api.openapi import document
from cyborg_lite.api.openapi.operations import SERVICE
from cyborg_lite.api.resource import Backing

PAGE: Final = Path(__file__).parents[1] / 'doc' / 'source' / 'api-reference.rst'

_SAMPLES: Final = '../api-samples'
_TITLES: Final = {
    'versions': 'Versions',
    'device_profiles': 'Device profiles',
    'accelerator_requests': 'Accelerator requests',
}
_INTRODUCTION: Final = """\
.. Written by `tox run -e genapi` from the code; changes by hand are lost.

=============
API reference
=============

All operations, each with a sample: what was sent and what came back, as the tests see
it. Ids, times and names stand for others. The service itself serves the same with every
detail, the form of each body and answer, as OpenAPI 3.1 at ``/v2/openapi.json``.

A client says with ``OpenStack-API-Version: accelerator 2.N`` which microversion it
speaks; who says nothing speaks 2.0. Errors are JSON with a readable text in
``errors[0].detail``, and for older clients in ``error_message`` too.

"""

Document = dict[str, Any]  # JSON


def page() -> str:
    """The whole of it, as reStructuredText."""
    # Who only looks for operations never reaches what is behind them.
    described = document.build(Root(cast(Backing, None)))
    sections: dict[str, list[str]] = {}
    for path, methods in described['paths'].items():
        for method, operation in methods.items():
            (tag,) = operation['tags']
            text = '\n'.join(_operation(method.upper(), path, operation))
            sections.setdefault(tag, []).append(text)
    parts = [_INTRODUCTION, *_microversions()]
    for tag, texts in sections.items():
        title = _TITLES.get(tag, tag.capitalize())
        parts += [_heading(title, '='), *texts]
    return '\n'.join(parts)


def _heading(title: str, line: str) -> str:
    return f'{title}\n{line * len(title)}\n'


def _microversions() -> Iterator[str]:
    """What the code says of each, below its name."""
    yield _heading('Microversions', '=')
    body = ast.parse(Path(microversion.__file__).read_text()).body
    said = {
        node.target.id: str(following.value.value)
        for node, following in pairwise(body)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
    }
    for version in microversion.VERSIONS:
        text = said[f'V{version.major}_{version.minor}']
        yield f'{version}\n    {text}\n'


def _operation(method: str, path: str, operation: Document) -> Iterator[str]:
    yield _heading(f'{method} {path}', '-')
    yield f'{operation["summary"]} {_terms(operation)}\n'
    asked = [one for one in operation['parameters'] if one.get('in') == 'query']
    for one in asked:
        since = one.get('x-openstack', {}).get('min-ver')
        suffix = f' Since {since}.' if since else ''
        yield f'``{one["name"]}``\n    {one["description"]}{suffix}'
    if asked:
        yield ''
    codes = sorted(operation['responses'])
    good, bad = _split(codes)
    refusals = f'; errors: {", ".join(bad)}' if bad else ''
    yield f'Answers: {", ".join(good)}{refusals}.\n'
    sample = f'{_SAMPLES}/{operation["operationId"]}.json'
    if (PAGE.parent / sample).is_file():
        yield f'.. literalinclude:: {sample}\n   :language: json\n'


def _terms(operation: Document) -> str:
    """Since when, and for whom."""
    extension = operation['x-openstack']
    terms = f'Since {extension["min-ver"]}.'
    if 'policy' in extension:
        terms += f' Rule ``{extension["policy"]}``.'
    security = operation['security']
    if security and all(SERVICE in one for one in security):
        terms += ' Needs a service token beside that of the user.'
    return terms


def _split(codes: list[str]) -> tuple[list[str], list[str]]:
    good = [code for code in codes if code < '400']
    return good, codes[len(good) :]


if __name__ == '__main__':
    PAGE.write_text(page())
