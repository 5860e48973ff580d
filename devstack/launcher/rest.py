# SPDX-License-Identifier: Apache-2.0
"""JSON over HTTP with the standard library."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_TIMEOUT: Final = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any  # JSON is of any shape; None: the body is empty or something else


@dataclass(frozen=True, slots=True)
class Service:
    """One service, asked by one persona."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """The answer, whatever its status.

        :raises OSError: there is none
        """
        request = urllib.request.Request(
            f'{self.endpoint}{path}',
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={'Content-Type': 'application/json', **self.headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                return Answer(answer.status, _json(answer.read()))
        except urllib.error.HTTPError as refusal:
            return Answer(refusal.code, _json(refusal.read()))

    def answers(self) -> bool:
        """Whether it listens at all."""
        try:
            self.ask('GET', '/')
        except OSError:
            return False
        return True


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None
