# SPDX-License-Identifier: Apache-2.0
"""The application put together."""

from collections.abc import Iterable
from typing import Any, Final

import pecan
from oslo_config import cfg
from oslo_middleware.healthcheck import Healthcheck
from oslo_middleware.http_proxy_to_wsgi import HTTPProxyToWSGI
from oslo_middleware.request_id import RequestId
from oslo_middleware.sizelimit import RequestBodySizeLimiter
from webob.multidict import MultiDict

from cyborg_lite.api import auth, cross_origin, policy
from cyborg_lite.api.controllers.root import Root
from cyborg_lite.api.frame import Frame
from cyborg_lite.api.mount import Mount
from cyborg_lite.api.resource import Backing
from cyborg_lite.model.device_profiles import Limits
from cyborg_lite.rpc.conductor import ConductorAPI

_HEALTH: Final = '/healthcheck'


def assemble(conf: cfg.ConfigOpts, conductor: ConductorAPI) -> Any:
    """The whole WSGI application.

    :param conf: read already; ``[api]`` is ours, the libraries register their own
        sections on it
    """
    # NOTE: the order matters, from the inside out. Only who is known reaches the
    # controllers, so authentication is next to them. The size of a body is checked
    # before a token is: refusing is cheap, asking Keystone is not. Whatever these
    # refuse needs our error document and the version headers, so the frame is around
    # them; a page of another origin may read errors too, so CORS is around the frame.
    # Proxy headers must have been heard before a link is made. The health check is not
    # for clients: no token, no version, and the address of the real peer. The mount
    # prefix is taken off before any path is looked at, and the request id comes first,
    # for every answer and every line of the log bears it.
    application: Any = _router(_backing(conf, conductor))
    application = auth.door(application, conf)
    application = RequestBodySizeLimiter(application, conf)
    limit = conf.oslo_middleware.max_request_body_size
    application = Frame(application, body_limit=limit)
    application = cross_origin.allowed(application, conf)
    application = HTTPProxyToWSGI(application, conf)
    application = _Health(application, conf)
    application = Mount(application)
    return RequestId(application, conf)


def _backing(conf: cfg.ConfigOpts, conductor: ConductorAPI) -> Backing:
    return Backing(
        conductor=conductor,
        policy=policy.load(conf),
        service_token_roles=auth.service_token_roles(conf),
        public_endpoint=conf.api.public_endpoint,
        json_depth=conf.api.max_json_depth,
        hold_power_on=conf.api.hold_power_on,
        refuse_impossible=conf.api.refuse_impossible_profiles,
        profile_limits=Limits(
            groups=conf.api.max_profile_groups,
            accelerators=conf.api.max_profile_accelerators,
            name=conf.api.max_name_length,
            description=conf.api.max_description_length,
            value=conf.api.max_accel_value_length,
        ),
    )


def _router(backing: Backing) -> pecan.Pecan:
    return _Router(
        Root(backing),
        request_cls=_Request,
        # A name or uuid may well end in .json, and no path is another one's directory.
        guess_content_type_from_ext=False,
        force_canonical=False,
    )


class _Router(pecan.Pecan):  # type: ignore[misc]  # untyped base
    """Without what pecan finds out anew at each request: whether we take arguments."""

    def route(self, req: Any, node: Root, path: str) -> Any:
        return node._route(path.split('/')[1:], req)

    # Any: what pecan has of a request; ours are methods that answer with a response.
    def invoke_controller(
        self, controller: Any, _arguments: Any, _named: Any, state: Any
    ) -> None:
        state.response = controller()


class _Request(pecan.Request):  # type: ignore[misc]  # untyped base
    """Without what pecan would make arguments and content types of, unasked.

    It would read the body before the caller is authorised, and stumble over some.
    """

    GET = params = property(lambda self: MultiDict())
    json = property(lambda self: {})
    accept = None  # the frame has looked at it


class _Health:
    """``/healthcheck``, for load balancers."""

    def __init__(self, application: Any, conf: cfg.ConfigOpts) -> None:
        """:param application: any WSGI application, for all other paths"""
        self._application = application
        self._check = Healthcheck(application, conf)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        asked = environ.get('PATH_INFO') == _HEALTH
        inside = self._check if asked else self._application
        answer: Iterable[bytes] = inside(environ, start_response)
        return answer
