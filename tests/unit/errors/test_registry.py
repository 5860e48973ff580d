# SPDX-License-Identifier: Apache-2.0
"""Tests of the codes of the error classes."""

import re
from collections.abc import Iterator

import pytest

from cyborg_lite import errors
from cyborg_lite.errors import registry
from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.devices import DeployableNotFound
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.errors.requests import GenerationConflict


def list_subclasses(root: type[CyborgError]) -> Iterator[type[CyborgError]]:
    yield root
    for child in root.__subclasses__():
        # oslo.messaging derives classes from errors that it rebuilds.
        if child.__module__ in errors.MODULES:
            yield from list_subclasses(child)


def test_list_errors_has_each_class_once() -> None:
    listed = list(registry.list_errors().values())
    expected = set(list_subclasses(CyborgError))
    assert set(listed) == expected
    assert len(listed) == len(expected)


@pytest.mark.parametrize(
    ('kind', 'code'),
    [
        (ArqNotFound, 'arq.not_found'),
        (DeployableNotFound, 'device.deployable_not_found'),
        (DeviceProfileNotFound, 'profile.not_found'),
        (GenerationConflict, 'request.generation_conflict'),
        (CyborgError, 'request.error'),
    ],
)
def test_find_code_omits_words_of_subject(kind: type[CyborgError], code: str) -> None:
    assert registry.find_code(kind) == f'cyborg_lite.{code}'


def test_find_code_of_error_from_rpc() -> None:
    """oslo.messaging rebuilds an error as an object of such a class."""
    kind = type('ArqNotFound_Remote', (ArqNotFound,), {'__module__': 'arqs_Remote'})
    assert registry.find_code(kind) == 'cyborg_lite.arq.not_found'


def test_codes_are_words_with_cause() -> None:
    for code, kind in registry.list_errors().items():
        assert re.fullmatch(r'cyborg_lite\.[a-z]+\.[a-z]+(_[a-z]+)*', code)
        assert registry.describe_cause(kind).endswith('.')
