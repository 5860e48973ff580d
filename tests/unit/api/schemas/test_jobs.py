# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of bodies of jobs."""

from typing import Any

import pytest

from cyborg_lite.api.schemas.jobs import ACTION, CREATE
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.jobs import JobRequestKind


@pytest.mark.parametrize('schema', [ACTION, CREATE])
def test_examples_match_schema(schema: Any) -> None:
    for example in schema.document['examples']:
        schema.check(example)


def test_create_accepts_all_kinds() -> None:
    for kind in JobRequestKind:
        CREATE.check({'kind': kind.value, 'hostname': 'compute-1'})


@pytest.mark.parametrize(
    'body', [{}, None, {'kind': 'bind'}, {'kind': 'audit', 'hostname': 'x' * 256}]
)
def test_create_invalid_body_is_refused(body: Any) -> None:
    with pytest.raises(InvalidInput):
        CREATE.check(body)
