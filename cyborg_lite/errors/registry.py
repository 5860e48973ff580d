# SPDX-License-Identifier: Apache-2.0
"""Codes of the error classes, for clients: ``cyborg_lite.arq.not_found``.

A code consists of the subject, which is the module of the class, and of the name of the
class without the words of the subject. A released code never changes its meaning.
"""

import functools
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from cyborg_lite import errors
from cyborg_lite.errors.base import CyborgError

# Modules whose subject is not the singular of their name, and the words to omit.
_SUBJECTS: Final[Mapping[str, tuple[str, str]]] = {
    'base': ('request', 'cyborg'),
    'profiles': ('profile', 'device profile'),
}


def find_code(kind: type[CyborgError]) -> str:
    """Return the code of an error class.

    :param kind: one of ``errors``, or a subclass of one, as RPC makes for its errors
    """
    kind = next(base for base in kind.__mro__ if base.__module__ in errors.MODULES)
    module = kind.__module__.rpartition('.')[2]
    singular = module.removesuffix('s')
    subject, omitted = _SUBJECTS.get(module, (singular, singular))
    words = re.sub('([A-Z])', r' \1', kind.__name__).lower().split()
    name = '_'.join(word for word in words if word not in omitted.split())
    return f'cyborg_lite.{subject}.{name}'


def describe_cause(kind: type[CyborgError]) -> str:
    """Return what the class means, without values of one case."""
    return ' '.join((kind.__doc__ or '').split())


def describe_code(code: str | None) -> str:
    """Return the cause of a code. Unlike a text of one case it names no host or path.

    :param code: None, or a code of another release: the general cause
    """
    return describe_cause(list_errors().get(code or '', CyborgError))


@functools.cache
def list_errors() -> Mapping[str, type[CyborgError]]:
    """Return all error classes by code, in alphabetic order."""
    kinds = sorted(_list_classes(), key=find_code)
    return MappingProxyType({find_code(kind): kind for kind in kinds})


def _list_classes() -> Iterator[type[CyborgError]]:
    for name in errors.MODULES:
        for kind in vars(import_module(name)).values():
            is_class = isinstance(kind, type) and issubclass(kind, CyborgError)
            if is_class and kind.__module__ == name:
                yield kind
