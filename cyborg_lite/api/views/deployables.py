# SPDX-License-Identifier: Apache-2.0
"""Deployables and their attributes in the responses of the API."""

import json
from datetime import datetime
from typing import Any

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_4, V2_5, V2_6, V2_7
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


class DeployableAttributeView(View):
    """An attribute of a deployable; a version is text."""

    name = str
    type = enum_of(AttributeType)
    unit = str
    value = Json(str, type=['string', 'integer', 'boolean'])

    @staticmethod
    def render_value(attribute: TypedAttribute, call: Call) -> int | str:
        """Return a number, a boolean or text."""
        value = attribute.parse()
        return value if isinstance(value, int) else attribute.value


class DeployableView(View):
    """A deployable.

    ``attributes`` are those that selectors compare, and then as strings those that
    were added by name. ``attributes_list`` are the latter as JSON text.
    """

    uuid = UUID
    device_uuid = since(V2_7, UUID)
    parent_uuid = since(V2_7, nullable(UUID))
    root_uuid = since(V2_7, nullable(UUID))
    parent_id = until(V2_6, nullable(int))
    root_id = until(V2_6, nullable(int))
    name = str
    num_accelerators = int
    device_id = until(V2_6, int)
    attributes_list = until(V2_4, JSON_TEXT)
    rp_uuid = nullable(UUID)
    driver_name = nullable(str)
    bitstream_id = nullable(UUID)
    links = LINKS
    created_at = datetime
    updated_at = nullable(datetime)
    attributes = since(V2_5, [DeployableAttributeView])

    @staticmethod
    def render_attributes_list(deployable: DeployableRecord, call: Call) -> str:
        """Return a list of objects with one key each."""
        return json.dumps([{item.key: item.value} for item in deployable.attributes])

    @staticmethod
    def render_attributes(
        deployable: DeployableRecord, call: Call
    ) -> list[TypedAttribute]:
        """Return the typed attributes, and others whose names are not among them."""
        names = {item.name for item in deployable.typed_attributes}
        untyped = (
            TypedAttribute(item.key, AttributeType.STRING, item.value)
            for item in deployable.attributes
            if item.key not in names
        )
        return [*deployable.typed_attributes, *untyped]

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


class AttributeList(ListView):
    """A page of attributes."""

    attributes = [AttributeView]
    attributes_links = NEXT_LINKS
