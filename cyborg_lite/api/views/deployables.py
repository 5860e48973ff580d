# SPDX-License-Identifier: Apache-2.0
"""Deployables and their attributes in the responses of the API."""

from datetime import datetime
from typing import Any

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_5, V2_6, V2_7
from cyborg_lite.api.views.shapes import (
    JSON_TEXT,
    UUID,
    Json,
    enum_of,
    nullable,
    since,
    until,
)
from cyborg_lite.api.views.view import LINKS, NEXT_LINKS, ListView, View
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.inventory.typed_attributes import AttributeType, TypedAttribute


class TypedAttributeView(View):
    """A typed attribute of a deployable.

    ``value`` is a number, a boolean or text since 2.7, and text before.
    """

    name = str
    type = enum_of(AttributeType)
    unit = str
    value = Json(str, type=['string', 'integer', 'boolean'])

    @staticmethod
    def render_value(attribute: TypedAttribute, call: Call) -> int | str:
        """Return the JSON value; a version, and before 2.7 any value, is text."""
        value = attribute.parse() if call.microversion >= V2_7 else None
        return value if isinstance(value, int) else attribute.value


class DeployableView(View):
    """A deployable; ``attributes_list`` is a list of objects, before 2.5 as text."""

    uuid = UUID
    device_uuid = since(V2_7, UUID)
    parent_uuid = since(V2_7, nullable(UUID))
    root_uuid = since(V2_7, nullable(UUID))
    parent_id = until(V2_6, nullable(int))
    root_id = until(V2_6, nullable(int))
    name = str
    num_accelerators = int
    device_id = until(V2_6, int)
    attributes_list = Json(
        JSON_TEXT,
        text_before=V2_5,
        type=['string', 'array'],
        items={'type': 'object', 'additionalProperties': {'type': 'string'}},
    )
    rp_uuid = nullable(UUID)
    driver_name = nullable(str)
    bitstream_id = nullable(UUID)
    links = LINKS
    created_at = datetime
    updated_at = nullable(datetime)
    typed_attributes = since(V2_5, [TypedAttributeView])

    @staticmethod
    def render_attributes_list(deployable: DeployableRecord, call: Call) -> Any:
        """Return an object with one key for each attribute."""
        return [{item.key: item.value} for item in deployable.attributes]

    @staticmethod
    def render_links(deployable: DeployableRecord, call: Call) -> Any:
        """Return the link to the deployable and its bookmark."""
        path = f'deployables/{deployable.uuid}'
        bookmark = {'href': call.links.build_url(path), 'rel': 'bookmark'}
        return [*call.links.build_self_links(f'v2/{path}'), bookmark]


class DeployableList(ListView):
    """A page of deployables."""

    deployables = [DeployableView]
    deployables_links = NEXT_LINKS


class AttributeView(View):
    """An attribute of a deployable."""

    _path = 'v2/attributes/{uuid}'

    uuid = UUID
    deployable_id = int
    key = str
    value = str
    links = LINKS
    created_at = datetime
    updated_at = nullable(datetime)
    generation = since(V2_5, int)


class AttributeList(ListView):
    """A page of attributes."""

    attributes = [AttributeView]
    attributes_links = NEXT_LINKS
