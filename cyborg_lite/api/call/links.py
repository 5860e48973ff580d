# SPDX-License-Identifier: Apache-2.0
"""URLs of the API as the client sees them, behind proxies and prefixes."""

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlsplit


@dataclass(frozen=True, slots=True)
class Links:
    """Builder of URLs of the API."""

    base: str  # URL of the mount prefix, without a slash at its end

    @classmethod
    def from_environ(cls, environ: dict[str, Any], public_endpoint: str | None) -> Self:
        """Build links from the request, or from ``[api] public_endpoint`` if it is set.

        A public endpoint with a path includes the mount prefix. To an endpoint without
        a path the prefix of the request is added.
        """
        prefix = quote(environ.get('SCRIPT_NAME', ''), encoding='latin-1')
        if public_endpoint:
            public = public_endpoint.rstrip('/')
            return cls(public if urlsplit(public).path else public + prefix)
        server = f'{environ["SERVER_NAME"]}:{environ["SERVER_PORT"]}'
        host = environ.get('HTTP_HOST') or server
        return cls(f'{environ["wsgi.url_scheme"]}://{host}{prefix.rstrip("/")}')

    def build_url(self, path: str) -> str:
        """Return the URL of a path, which has no leading slash."""
        return f'{self.base}/{path}'

    def build_self_links(self, path: str) -> list[dict[str, str]]:
        """Return the ``self`` link of an object, as JSON."""
        return [{'href': f'{self.base}/{path}', 'rel': 'self'}]
