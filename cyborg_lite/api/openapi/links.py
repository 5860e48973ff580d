# SPDX-License-Identifier: Apache-2.0
"""Where a client finds in one answer what the next request names."""

from typing import Any

from wsme import types

from cyborg_lite.api.openapi.operations import identity
from cyborg_lite.api.openapi.parameters import path_names
from cyborg_lite.api.openapi.routes import Route
from cyborg_lite.api.views.shapes import wsme_type

Document = dict[str, Any]  # JSON


def links(route: Route, every: list[Route]) -> Document:
    """From what the route answers to all that can be done with the first of it."""
    place = next(filter(None, map(_place_of_uuid, route.views)), None)
    if place is None or path_names(route.path):
        return {}
    return {
        identity(one): {
            'operationId': identity(one),
            'parameters': dict.fromkeys(
                path_names(one.path), f'$response.body#{place}'
            ),
        }
        for one in every
        if one.path.startswith(f'{route.path}/{{')
    }


def _place_of_uuid(view: Any) -> str | None:
    """A pointer of JSON; None: nothing there has a uuid."""
    if not types.iscomplex(view):
        return None
    for field in types.list_attributes(view):
        kind = wsme_type(field.datatype)
        if field.name == 'uuid':
            return '/uuid'
        if isinstance(kind, types.ArrayType) and _place_of_uuid(kind.item_type):
            return f'/{field.name}/0/uuid'
    return None
