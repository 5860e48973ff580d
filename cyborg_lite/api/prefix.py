# SPDX-License-Identifier: Apache-2.0
"""Support for the path prefix of service catalogs without a web server in front."""

from collections.abc import Iterable
from typing import Any, Final

PREFIX: Final = '/accelerator'


class PrefixMiddleware:
    """Serves ``/accelerator/v2/...`` in the same way as ``/v2/...``.

    A web server that mounts the API at the prefix strips it from the path. In that case
    a second prefix is not stripped.
    """

    def __init__(self, application: Any) -> None:
        """Store the WSGI application."""
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get('PATH_INFO', '')
        script_name = environ.get('SCRIPT_NAME', '')
        has_prefix = path == PREFIX or path.startswith(f'{PREFIX}/')
        if has_prefix and not script_name.endswith(PREFIX):
            environ['SCRIPT_NAME'] = script_name + PREFIX
            environ['PATH_INFO'] = path.removeprefix(PREFIX)
        body: Iterable[bytes] = self._application(environ, start_response)
        return body
