# SPDX-License-Identifier: Apache-2.0
"""A JSON client over HTTP that uses only the standard library."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_TIMEOUT: Final = 30.0  # seconds


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response."""

    status: int
    body: Any  # any JSON value; None if the body is empty or not JSON
    location: str = ''


@dataclass(frozen=True, slots=True)
class Service:
    """A service endpoint with the headers of one user."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request and return the response, also for an error status.

        :raises OSError: if the service cannot be reached
        """
        request = urllib.request.Request(
            f'{self.endpoint}{path}',
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={'Content-Type': 'application/json', **self.headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                location = answer.headers.get('Location', '')
                return Answer(answer.status, _json(answer.read()), location)
        except urllib.error.HTTPError as error:
            return Answer(error.code, _json(error.read()))

    def answers(self) -> bool:
        """Check whether the service can be reached."""
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
