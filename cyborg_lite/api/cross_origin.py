# SPDX-License-Identifier: Apache-2.0
"""CORS, for dashboards of another origin that call the API from a browser."""

from typing import Any, Final

import webob
from oslo_config import cfg
from oslo_middleware import cors

from cyborg_lite.api import microversion
from cyborg_lite.api.call import call

_READABLE: Final = [
    microversion.HEADER,
    microversion.MINIMUM_HEADER,
    microversion.MAXIMUM_HEADER,
    'X-Openstack-Request-Id',
]
_SENDABLE: Final = [
    microversion.HEADER,
    call.IF_MATCH,
    'X-Auth-Token',
    'X-Openstack-Request-Id',
]


def add_cors(application: Any, conf: cfg.ConfigOpts) -> Any:
    """Wrap a WSGI application in CORS if ``[cors] allowed_origin`` is set."""
    cors.set_defaults(expose_headers=_READABLE, allow_headers=_SENDABLE)
    conf.register_opts(cors.OPTS, 'cors')
    if not conf.cors.allowed_origin:
        return application
    return _CorsMiddleware(application, conf)


class _CorsMiddleware(cors.CORS):
    """CORS middleware that keeps the ``Vary`` header of the response."""

    def process_response(
        self, response: webob.Response, request: webob.Request | None = None
    ) -> webob.Response:
        """Add the CORS headers; the library would overwrite ``Vary``."""
        vary = response.headers.getall('Vary')
        final_response = super().process_response(response, request)
        if vary and 'Access-Control-Allow-Origin' in final_response.headers:
            final_response.headers['Vary'] = ', '.join([*vary, 'Origin'])
        return final_response
