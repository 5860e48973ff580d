# SPDX-License-Identifier: Apache-2.0
"""Assembly of the WSGI application from the router and its middleware."""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pecan
import webob
from oslo_config import cfg
from oslo_middleware.http_proxy_to_wsgi import HTTPProxyToWSGI
from oslo_middleware.request_id import RequestId
from oslo_middleware.sizelimit import RequestBodySizeLimiter

from cyborg_lite.api import auth, cross_origin, routes
from cyborg_lite.api.call.expose import REQUEST
from cyborg_lite.api.call.hold import Hold
from cyborg_lite.api.call.resource import ApiContext
from cyborg_lite.api.healthcheck import HealthcheckMiddleware
from cyborg_lite.api.microversion import MINIMUM
from cyborg_lite.api.middleware import (
    MICROVERSION,
    Observe,
    PrefixMiddleware,
    ResponseMiddleware,
)
from cyborg_lite.api.openapi import document
from cyborg_lite.api.policy import Policy
from cyborg_lite.model.profiles.device_profiles import Limits
from cyborg_lite.rpc.interface import Conductor

# Pecan would parse the input before the policy is checked, and fails on some of it.
# Controllers parse it, see ``expose``.
_NO_INPUT: Final = {
    'QUERY_STRING': '',
    'CONTENT_TYPE': 'text/plain',  # Pecan does not read such a body
    'HTTP_ACCEPT': '',  # ResponseMiddleware has checked the header
}

# One of so many threads may hold a request, so that others always answer.
_THREADS_PER_HOLD: Final = 4


def assemble(
    conf: cfg.ConfigOpts,
    conductor: Conductor,
    observe: Observe | None = None,
    stopping: threading.Event | None = None,
) -> Any:
    """Build the WSGI application of the API.

    :param conf: parsed configuration with the section ``[api]``; the middleware
        libraries register their own sections on it
    :param observe: called for each answer; None: nothing observes the requests
    :param stopping: set when the process stops; None: no request is answered early then
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
    application: Any = _build_router(_build_context(conf, conductor, stopping))
    application = auth.add_authentication(application, conf)
    application = RequestBodySizeLimiter(application, conf)
    limit = conf.oslo_middleware.max_request_body_size
    application = ResponseMiddleware(
        application, limit, observe, conf.api.public_endpoint
    )
    application = cross_origin.add_cors(application, conf)
    # The constructor registers the option.
    behind_proxy = HTTPProxyToWSGI(application, conf)
    if conf.oslo_middleware.enable_proxy_headers_parsing:
        application = behind_proxy
    application = HealthcheckMiddleware(application, conf, conductor)
    application = PrefixMiddleware(application)
    return RequestId(application, conf)


def _build_context(
    conf: cfg.ConfigOpts,
    conductor: Conductor,
    stopping: threading.Event | None = None,
) -> ApiContext:
    return ApiContext(
        conductor=conductor,
        policy=Policy(conf),
        encode_document=document.encode_document,
        service_token_roles=auth.read_service_token_roles(conf),
        public_endpoint=conf.api.public_endpoint,
        json_depth=conf.api.max_json_depth,
        max_limit=conf.api.max_limit,
        extra_accel_keys=frozenset(conf.api.extra_accel_keys),
        hold_power_on=conf.api.hold_power_on,
        refuse_failed_binds=conf.api.refuse_failed_binds,
        hold=Hold(conf.api.threads // _THREADS_PER_HOLD, stopping or threading.Event()),
        hold_bind=conf.api.hold_bind,
        refuse_impossible_profiles=conf.api.refuse_impossible_profiles,
        device_type_availability=conf.api.device_type_availability,
        profile_limits=Limits(
            groups=conf.api.max_profile_groups,
            accelerators=conf.api.max_profile_accelerators,
            name=conf.api.max_name_length,
            description=conf.api.max_description_length,
            value=conf.api.max_accel_value_length,
            tolerates=conf.api.default_tolerates,
        ),
    )


def _build_router(context: ApiContext) -> Any:
    application = pecan.Pecan(
        _Root(context),
        use_context_locals=False,
        # A name or uuid may end in .json, and a path has no canonical form with a
        # slash at its end.
        guess_content_type_from_ext=False,
        force_canonical=False,
    )

    def hide_input(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        hidden = {**environ, **_NO_INPUT, REQUEST: webob.Request(environ)}
        body: Iterable[bytes] = application(hidden, start_response)
        return body

    return hide_input


class _Root:
    """Root controller; Pecan asks it for the method that handles a request."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context

    @pecan.expose()  # type: ignore[untyped-decorator]  # untyped library
    def _route(
        self, segments: Sequence[str], request: pecan.Request
    ) -> tuple[Callable[..., webob.Response], list[str]]:
        """Return the method, and no further segments."""
        path = '/' + '/'.join(segments)
        controller, identifiers = routes.find_controller(path)
        version = request.environ.get(MICROVERSION, MINIMUM)
        name = controller.find_method(request.method, version)
        return getattr(controller(self._context, identifiers), name), []
