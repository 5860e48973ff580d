# SPDX-License-Identifier: Apache-2.0
"""Assembly of the WSGI application from the router and its middleware."""

from cyborg_lite.api.pecan_loading import pecan  # isort: skip  # hides libraries from the others

from collections.abc import Callable
from typing import Any

from oslo_config import cfg
from oslo_middleware.http_proxy_to_wsgi import HTTPProxyToWSGI
from oslo_middleware.request_id import RequestId
from oslo_middleware.sizelimit import RequestBodySizeLimiter
from webob.multidict import MultiDict

from cyborg_lite.api import auth, cross_origin, policy, routes
from cyborg_lite.api.healthcheck import HealthcheckMiddleware
from cyborg_lite.api.microversion import MINIMUM
from cyborg_lite.api.middleware import MICROVERSION, Observe, ResponseMiddleware
from cyborg_lite.api.openapi import document
from cyborg_lite.api.prefix import PrefixMiddleware
from cyborg_lite.api.resource import ApiContext
from cyborg_lite.model.device_profiles import Limits
from cyborg_lite.rpc.conductor import ConductorAPI


def assemble(
    conf: cfg.ConfigOpts, conductor: ConductorAPI, observe: Observe | None = None
) -> Any:
    """Build the WSGI application of the API.

    :param conf: parsed configuration with the section ``[api]``; the middleware
        libraries register their own sections on it
    :param observe: called for each answer; None: nothing observes the requests
    """
    # NOTE: the order matters. The list goes from the innermost to the outermost layer.
    # - Authentication wraps the router: controllers only see authenticated callers.
    # - The body size is checked before the token, because it is the cheaper check.
    # - ResponseMiddleware wraps both, so that their errors get the error document and
    #   the version headers.
    # - CORS wraps ResponseMiddleware, so that browsers may read errors too.
    # - Proxy headers are parsed before any link is built.
    # - The health check needs neither a token nor a version, and must see the address
    #   of the real peer.
    # - PrefixMiddleware strips the prefix before any layer compares a path.
    # - RequestId is outermost: every response and every log line carries the id.
    application: Any = _build_router(_build_context(conf, conductor))
    application = auth.add_authentication(application, conf)
    application = RequestBodySizeLimiter(application, conf)
    limit = conf.oslo_middleware.max_request_body_size
    application = ResponseMiddleware(application, body_limit=limit, observe=observe)
    application = cross_origin.add_cors(application, conf)
    # The constructor registers the option.
    behind_proxy = HTTPProxyToWSGI(application, conf)
    if conf.oslo_middleware.enable_proxy_headers_parsing:
        application = behind_proxy
    application = HealthcheckMiddleware(application, conf, conductor)
    application = PrefixMiddleware(application)
    return RequestId(application, conf)


def _build_context(conf: cfg.ConfigOpts, conductor: ConductorAPI) -> ApiContext:
    return ApiContext(
        conductor=conductor,
        policy=policy.load_policy(conf),
        build_document=document.build_document,
        service_token_roles=auth.read_service_token_roles(conf),
        public_endpoint=conf.api.public_endpoint,
        json_depth=conf.api.max_json_depth,
        max_limit=conf.api.max_limit,
        extra_accel_keys=frozenset(conf.api.extra_accel_keys),
        hold_power_on=conf.api.hold_power_on,
        refuse_failed_binds=conf.api.refuse_failed_binds,
        refuse_impossible_profiles=conf.api.refuse_impossible_profiles,
        profile_limits=Limits(
            groups=conf.api.max_profile_groups,
            accelerators=conf.api.max_profile_accelerators,
            name=conf.api.max_name_length,
            description=conf.api.max_description_length,
            value=conf.api.max_accel_value_length,
        ),
    )


def _build_router(context: ApiContext) -> pecan.Pecan:
    return _Router(
        context,
        request_cls=_Request,
        # A name or uuid may end in .json, and a path has no canonical form with a
        # slash at its end.
        guess_content_type_from_ext=False,
        force_canonical=False,
    )


class _Router(pecan.Pecan):  # type: ignore[misc]  # untyped base
    """Pecan application that routes by ``routes.ROUTES``.

    It calls each method with the request. Pecan would inspect the signature of the
    method for every request, and look the request up for every access.
    """

    def route(
        self, req: Any, node: ApiContext, path: str
    ) -> tuple[Callable[[Any], Any], list[str]]:
        """Return the method that handles the request, and no further path segments."""
        controller, identifiers = routes.find_controller(path)
        resource = controller(node, identifiers)
        version = req.environ.get(MICROVERSION, MINIMUM)
        return getattr(resource, controller.find_method(req.method, version)), []

    # Any: Pecan is untyped. Controller methods return a response.
    def invoke_controller(
        self, controller: Any, _arguments: Any, _keywords: Any, state: Any
    ) -> None:
        """Call the method; it returns the response."""
        state.response = controller(state.request)


class _Request(pecan.Request):  # type: ignore[misc]  # untyped base
    """Request without the query, form and content type parsing of Pecan.

    Pecan would read the body before the caller is authorized, and fails on some bodies.
    """

    GET = params = property(lambda self: MultiDict())
    json = property(lambda self: {})
    accept = None  # ResponseMiddleware has checked the header
