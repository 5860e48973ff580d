# SPDX-License-Identifier: Apache-2.0
"""Schemas of error bodies, from ``errors.yaml``, and a description of their codes."""

from importlib import resources
from typing import Any, Final

import yaml

from cyborg_lite.errors import registry

_TEXT: Final = resources.files(__package__).joinpath('errors.yaml').read_text()
_SINCE_2_5: Final = ('code', 'links', 'pointer')

UNAUTHORIZED: Final[dict[str, Any]] = yaml.safe_load(_TEXT)['unauthorized']


def build_error(*, has_code: bool | None) -> dict[str, Any]:
    """Return the schema of an error body.

    :param has_code: True: since microversion 2.5; None: any microversion
    """
    schema: dict[str, Any] = yaml.safe_load(_TEXT)['error']
    error = schema['properties']['errors']['items']
    error['properties']['code']['enum'] = list(registry.list_errors())
    if not has_code:
        error['required'] = [n for n in error['required'] if n not in _SINCE_2_5]
    if has_code is False:
        for name in _SINCE_2_5:
            del error['properties'][name]
    return schema


def describe_codes() -> dict[str, dict[str, Any]]:
    """Return status, cause and remedy of each error code."""
    return {
        code: {
            'status': kind.code,
            'cause': registry.describe_cause(kind),
            'remedy': kind.advice,
        }
        for code, kind in registry.list_errors().items()
    }
