# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of bodies of cleanings."""

from typing import Any

import pytest

from cyborg_lite.api.schemas.cleanings import ACCEPT, RETRY
from cyborg_lite.errors.base import InvalidInput


@pytest.mark.parametrize('schema', [ACCEPT, RETRY])
def test_examples_match_schema(schema: Any) -> None:
    for example in schema.document['examples']:
        schema.check(example)


@pytest.mark.parametrize('body', [None, {}, {'unit': 'u' * 128}])
def test_retry_of_all_units_needs_no_body(body: object) -> None:
    RETRY.check(body)


@pytest.mark.parametrize('body', [{'unit': ''}, {'unit': 'u' * 129}, {'name': 'x'}, []])
def test_retry_invalid_body_is_refused(body: Any) -> None:
    with pytest.raises(InvalidInput):
        RETRY.check(body)


@pytest.mark.parametrize('body', [{}, None, {'name': ''}, {'name': 'x', 'force': True}])
def test_accept_requires_name_of_operator(body: Any) -> None:
    """The history shows who declared a unit clean."""
    with pytest.raises(InvalidInput):
        ACCEPT.check(body)
