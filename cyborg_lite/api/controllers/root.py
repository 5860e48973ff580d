# SPDX-License-Identifier: Apache-2.0
"""The top of the tree, where every request begins its way to a controller."""

from collections.abc import Callable
from typing import Any

import pecan

from cyborg_lite.api.call import Call
from cyborg_lite.api.controllers.v2 import V2
from cyborg_lite.api.expose import expose
from cyborg_lite.api.frame import MICROVERSION
from cyborg_lite.api.microversion import MINIMUM
from cyborg_lite.api.resource import Backing, Resource
from cyborg_lite.api.views import versions


class Root(Resource):
    """``/``"""

    def __init__(self, backing: Backing) -> None:
        super().__init__(backing)
        self._v2 = V2(backing, self)

    @pecan.expose()  # type: ignore[untyped-decorator]  # untyped library
    def _route(
        self, segments: list[str], _request: Any
    ) -> tuple[Callable[[], Any], list[str]]:
        """Pecan's question of what answers the path; any type, as it is untyped."""
        resource: Resource = self
        # A trailing slash makes no difference.
        path = segments[:-1] if segments and not segments[-1] else segments
        for segment in path:
            resource = resource.below(segment)
        version = pecan.request.environ.get(MICROVERSION, MINIMUM)
        return resource.handler(pecan.request.method, version), []

    def below(self, segment: str) -> Resource:
        # Some catalogues lack the version: the collections are found here too.
        return self._v2 if segment == 'v2' else self._v2.below(segment)

    @expose(versions.RootView)
    def get(self, call: Call) -> versions.RootView:
        return versions.RootView.showing(call.links)
