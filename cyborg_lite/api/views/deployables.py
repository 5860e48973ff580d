# SPDX-License-Identifier: Apache-2.0
"""Deployables in the responses of the API."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_4, V2_8, V2_27
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.selection import select_view
from cyborg_lite.api.views.shapes import (
    UUID,
    JsonValue,
    enum_of,
    nullable,
    optional,
    since,
)
from cyborg_lite.api.views.view import View
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.typed_attributes import AttributeType, TypedAttribute


class TypedAttributeView(View):
    """A typed attribute of a deployable; ``value`` is text in canonical form."""

    name = str
    type = enum_of(AttributeType)
    unit = str
    value = str

    @classmethod
    def build(cls, attribute: TypedAttribute) -> Self:
        """Build the view."""
        return cls(
            name=attribute.name,
            type=attribute.type.value,
            unit=attribute.unit,
            value=attribute.value,
        )


class DeployableView(View):
    """A deployable; ``attributes_list`` is a list of objects, before 2.27 as text."""

    uuid = UUID
    parent_id = nullable(int)
    root_id = nullable(int)
    name = str
    num_accelerators = int
    device_id = int
    attributes_list = JsonValue(
        type=['string', 'array'],
        items={'type': 'object', 'additionalProperties': {'type': 'string'}},
    )
    rp_uuid = nullable(UUID)
    driver_name = nullable(str)
    bitstream_id = nullable(UUID)
    links = [Link]
    created_at = datetime
    updated_at = nullable(datetime)
    typed_attributes = since(V2_8, [TypedAttributeView])

    @classmethod
    def build(cls, deployable: DeployableRecord, call: Call) -> Self:
        """Build the view."""
        typed: Any = types.Unset  # omitted
        if call.microversion >= V2_8 and call.selects('typed_attributes'):
            typed = [*map(TypedAttributeView.build, deployable.typed_attributes)]
        attributes: Any = types.Unset
        if call.selects('attributes_list'):
            attributes = [{item.key: item.value} for item in deployable.attributes]
            if call.microversion < V2_27:
                attributes = json.dumps(attributes)
        view = cls(
            uuid=deployable.uuid,
            parent_id=deployable.parent_id,
            root_id=deployable.root_id,
            name=deployable.name,
            num_accelerators=deployable.num_accelerators,
            device_id=deployable.device_id,
            attributes_list=attributes,
            rp_uuid=deployable.rp_uuid,
            driver_name=deployable.driver_name,
            bitstream_id=deployable.bitstream_id,
            links=_build_links(call, deployable.uuid),
            created_at=deployable.created_at,
            updated_at=deployable.updated_at,
            typed_attributes=typed,
        )
        return select_view(view, call.fields)


def _build_links(call: Call, uuid: str) -> list[Link]:
    links = call.links
    bookmark = Link(href=links.build_url(f'deployables/{uuid}'), rel='bookmark')
    return [*Link.build_self_links(links, f'v2/deployables/{uuid}'), bookmark]


class DeployableList(View):
    """A page of deployables."""

    deployables = [DeployableView]
    deployables_links = since(V2_4, optional([Link]))

    @classmethod
    def build(
        cls, deployables: Iterable[DeployableRecord], call: Call, next_links: Any
    ) -> Self:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        """
        views = [DeployableView.build(deployable, call) for deployable in deployables]
        return cls(deployables=views, deployables_links=next_links)
