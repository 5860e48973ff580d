# SPDX-License-Identifier: Apache-2.0
"""Links from the response of an operation to the operations that can follow."""

from typing import Any

from wsme import types

from cyborg_lite.api.openapi.parameters import list_path_names
from cyborg_lite.api.openapi.routes import Route
from cyborg_lite.api.views.shapes import resolve_wsme_type

Document = dict[str, Any]  # JSON


def build_links(route: Route, all_routes: list[Route]) -> Document:
    """Return links to the operations on the first object in the response."""
    pointer = next(filter(None, map(_find_uuid, route.views)), None)
    if pointer is None or list_path_names(route.path):
        return {}
    return {
        target.operation_id: {
            'operationId': target.operation_id,
            'parameters': dict.fromkeys(
                list_path_names(target.path), f'$response.body#{pointer}'
            ),
        }
        for target in all_routes
        if target.path.startswith(f'{route.path}/{{')
    }


def _find_uuid(view: Any) -> str | None:
    """Return the JSON pointer to the first uuid; None: the view has no uuid."""
    if not types.iscomplex(view):
        return None
    for field in types.list_attributes(view):
        kind = resolve_wsme_type(field.datatype)
        if field.name == 'uuid':
            return '/uuid'
        if isinstance(kind, types.ArrayType) and _find_uuid(kind.item_type):
            return f'/{field.name}/0/uuid'
    return None
