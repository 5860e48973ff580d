# SPDX-License-Identifier: Apache-2.0
"""Addresses that a client can follow, from where the service really stands."""

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlsplit


@dataclass(frozen=True, slots=True)
class Links:
    base: str  # up to the mount prefix, without a slash at its end

    @classmethod
    def of(cls, environ: dict[str, Any], public_endpoint: str | None) -> Self:
        """From the request, or from what the operator says clients see.

        A public endpoint with a path is taken whole: it names the prefix too. One
        without gets the prefix of the request.
        """
        prefix = quote(environ.get('SCRIPT_NAME', ''), encoding='latin-1')
        if public_endpoint:
            public = public_endpoint.rstrip('/')
            return cls(public if urlsplit(public).path else public + prefix)
        host = environ.get('HTTP_HOST') or _server(environ)
        return cls(f'{environ["wsgi.url_scheme"]}://{host}{prefix.rstrip("/")}')

    def to(self, path: str) -> str:
        return f'{self.base}/{path}'


def _server(environ: dict[str, Any]) -> str:
    return f'{environ["SERVER_NAME"]}:{environ["SERVER_PORT"]}'
