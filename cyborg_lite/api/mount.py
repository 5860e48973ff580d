# SPDX-License-Identifier: Apache-2.0
"""The prefix under which catalogues know us, served without a web server before us."""

from collections.abc import Iterable
from typing import Any, Final

PREFIX: Final = '/accelerator'


class Mount:
    """Serves ``/accelerator/v2/...`` and ``/v2/...`` alike.

    A web server that mounts us at the prefix takes it off the path itself; then a
    path that still begins with it is not ours.
    """

    def __init__(self, application: Any) -> None:
        """:param application: any WSGI application"""
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get('PATH_INFO', '')
        mounted = environ.get('SCRIPT_NAME', '')
        inside = path == PREFIX or path.startswith(f'{PREFIX}/')
        if inside and not mounted.endswith(PREFIX):
            environ['SCRIPT_NAME'] = mounted + PREFIX
            environ['PATH_INFO'] = path.removeprefix(PREFIX)
        answer: Iterable[bytes] = self._application(environ, start_response)
        return answer
