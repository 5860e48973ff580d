# SPDX-License-Identifier: Apache-2.0
"""Pages of other origins, such as a dashboard's, that call the API from a browser."""

from typing import Any, Final

import webob
from oslo_config import cfg
from oslo_middleware import cors

from cyborg_lite.api import microversion

_READABLE: Final = [
    microversion.HEADER,
    microversion.MINIMUM_HEADER,
    microversion.MAXIMUM_HEADER,
    'X-Openstack-Request-Id',
]
_SENDABLE: Final = [microversion.HEADER, 'X-Auth-Token', 'X-Openstack-Request-Id']


def allowed(application: Any, conf: cfg.ConfigOpts) -> Any:
    """The WSGI application, open to the origins in ``[cors]``; as it is without any."""
    cors.set_defaults(expose_headers=_READABLE, allow_headers=_SENDABLE)
    conf.register_opts(cors.OPTS, 'cors')
    if not conf.cors.allowed_origin:
        return application
    return _Cors(application, conf)


class _Cors(cors.CORS):
    def process_response(
        self, response: webob.Response, request: webob.Request | None = None
    ) -> webob.Response:
        """The library's, which forgets that answers vary by more than the origin."""
        vary = response.headers.getall('Vary')
        answer = super().process_response(response, request)
        if vary and 'Access-Control-Allow-Origin' in answer.headers:
            answer.headers['Vary'] = ', '.join([*vary, 'Origin'])
        return answer
