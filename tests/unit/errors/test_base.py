# SPDX-License-Identifier: Apache-2.0
"""Checks that apply to every error class: texts, HTTP codes, transfer by RPC."""

import string

import pytest
from oslo_messaging._drivers import common

from cyborg_lite import errors
from cyborg_lite.errors import registry
from cyborg_lite.errors.arqs import ArqNotFound
from cyborg_lite.errors.base import CyborgError, NotFound
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.text import is_storable
from cyborg_lite.rpc.security import signing

ERROR_CLASSES = [*registry.list_errors().values()]
all_errors = pytest.mark.parametrize('cls', ERROR_CLASSES, ids=lambda cls: cls.__name__)


def _fields(cls: type[CyborgError]) -> dict[str, str]:
    templates = f'{cls.message} {cls.advice}'
    names = {name for _, name, _, _ in string.Formatter().parse(templates) if name}
    return {name: f'<{name}>' for name in names}


@all_errors
def test_error_text_contains_every_field(cls: type[CyborgError]) -> None:
    error = cls(**_fields(cls))
    assert str(error) == error.text
    assert '{' not in error.text
    for _, name, _, _ in string.Formatter().parse(cls.message):
        assert name is None or f'<{name}>' in error.text


@pytest.mark.parametrize('reason', ['No such file', 'No such file.'])
def test_full_text_of_error_is_two_sentences(reason: str) -> None:
    error = ConfigurationError(reason=reason)
    assert error.full_text == f'No such file. {error.advice}'


@all_errors
def test_error_code_is_http_error(cls: type[CyborgError]) -> None:
    assert 400 <= cls.code <= 599


@all_errors
def test_error_texts_are_sentences(cls: type[CyborgError]) -> None:
    assert cls.message.endswith(('.', '}'))
    assert cls.advice.endswith('.')


@all_errors
def test_error_server_side_has_advice(cls: type[CyborgError]) -> None:
    if cls.code >= 500:
        assert cls.advice


@all_errors
def test_error_sent_by_rpc_keeps_class_and_fields(cls: type[CyborgError]) -> None:
    error = cls(**_fields(cls))
    try:
        raise error
    except CyborgError:
        serialized = common.serialize_remote_exception(
            (cls, error, error.__traceback__)
        )
    rebuilt = common.deserialize_remote_exception(serialized, list(errors.MODULES))
    assert isinstance(rebuilt, cls)
    assert rebuilt.text == error.text
    if cls is not CyborgError:
        assert type(signing.load_error(signing.dump_error(error))) is cls
    assert rebuilt.kwargs == error.kwargs


def test_error_without_required_field_raises_key_error() -> None:
    with pytest.raises(KeyError):
        ArqNotFound()


def test_text_can_be_stored_and_sent() -> None:
    """A driver may pass on what a tool has written; PostgreSQL refuses NUL."""
    error = CyborgError()
    assert is_storable(error.text)
    error = NotFound(what='\0', name='\udc80')
    assert is_storable(error.text)
    assert is_storable(signing.load_error(signing.dump_error(error)).text)
