# SPDX-License-Identifier: Apache-2.0
"""Every error says what is wrong, and survives the bus."""

import string
from collections.abc import Iterator

import pytest
from oslo_messaging._drivers import common

from cyborg_lite import exceptions
from cyborg_lite.exceptions import CyborgError, NotFound
from cyborg_lite.rpc import wire


def _family(root: type[CyborgError]) -> Iterator[type[CyborgError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith('cyborg_lite.'):
            yield from _family(child)


FAMILY = sorted(set(_family(CyborgError)), key=lambda cls: cls.__name__)
every_error = pytest.mark.parametrize('cls', FAMILY, ids=lambda cls: cls.__name__)


def _fields(cls: type[CyborgError]) -> dict[str, str]:
    texts = f'{cls.message} {cls.advice}'
    names = {name for _, name, _, _ in string.Formatter().parse(texts) if name}
    return {name: f'<{name}>' for name in names}


def test_all_errors_are_looked_at() -> None:
    assert {CyborgError, NotFound, wire.MalformedMessage} <= set(FAMILY)


@every_error
def test_the_text_holds_every_field(cls: type[CyborgError]) -> None:
    error = cls(**_fields(cls))
    assert str(error) == error.text
    assert '{' not in error.text
    for _, name, _, _ in string.Formatter().parse(cls.message):
        assert name is None or f'<{name}>' in error.text


@every_error
def test_the_code_is_one_of_http(cls: type[CyborgError]) -> None:
    assert 400 <= cls.code <= 599


@every_error
def test_text_and_advice_are_sentences(cls: type[CyborgError]) -> None:
    assert cls.message.endswith(('.', '}'))
    assert cls.advice.endswith('.')


@every_error
def test_whoever_looks_after_the_service_is_told_what_to_do(
    cls: type[CyborgError],
) -> None:
    if cls.code >= 500:
        assert cls.advice


@every_error
def test_it_arrives_over_the_bus_as_itself(cls: type[CyborgError]) -> None:
    error = cls(**_fields(cls))
    try:
        raise error
    except CyborgError:
        sent = common.serialize_remote_exception((cls, error, error.__traceback__))
    rebuilt = common.deserialize_remote_exception(
        sent, ['cyborg_lite.exceptions', 'cyborg_lite.rpc.wire']
    )
    assert isinstance(rebuilt, cls)
    assert rebuilt.text == error.text
    assert rebuilt.kwargs == error.kwargs


def test_a_field_that_is_missing_is_a_mistake_found_at_once() -> None:
    with pytest.raises(KeyError):
        exceptions.ArqNotFound()
