# SPDX-License-Identifier: Apache-2.0
"""Tests of the schemas of bodies of deployables."""

from typing import Any

import pytest

from cyborg_lite.api.schemas.deployables import PROGRAM
from cyborg_lite.errors.base import InvalidInput

IMAGE = {'image_uuid': 'd5ca2f11-3108-4426-a11c-a959987565df'}
OPERATION = {'op': 'replace', 'path': '/program', 'value': [IMAGE]}


def test_examples_match_schema() -> None:
    for example in PROGRAM.document['examples']:
        PROGRAM.check(example)


@pytest.mark.parametrize(
    'body',
    [
        [],
        [OPERATION, OPERATION],
        [{**OPERATION, 'op': 'add'}],
        [{**OPERATION, 'path': '/name'}],
        [{**OPERATION, 'value': []}],
        [{**OPERATION, 'value': [IMAGE, IMAGE]}],
        [{**OPERATION, 'value': [{}]}],
        [{**OPERATION, 'value': IMAGE}],
        OPERATION,
    ],
)
def test_program_loads_one_image_per_call(body: Any) -> None:
    with pytest.raises(InvalidInput):
        PROGRAM.check(body)
