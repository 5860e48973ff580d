# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables in the responses of the API."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from wsme import types

from cyborg_lite.api.call import Call
from cyborg_lite.api.microversion import V2_4, V2_21
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.selection import select_view
from cyborg_lite.api.views.shapes import UUID, nullable, optional, since
from cyborg_lite.api.views.view import View
from cyborg_lite.model.devices import Attribute


class AttributeView(View):
    """An attribute of a deployable."""

    uuid = UUID
    deployable_id = int
    key = str
    value = str
    links = [Link]
    created_at = datetime
    updated_at = nullable(datetime)
    generation = since(V2_21, int)

    @classmethod
    def build(cls, attribute: Attribute, call: Call) -> Self:
        """Build the view."""
        view = cls(
            uuid=attribute.uuid,
            deployable_id=attribute.deployable_id,
            key=attribute.key,
            value=attribute.value,
            links=Link.build_self_links(call.links, f'v2/attributes/{attribute.uuid}'),
            created_at=attribute.created_at,
            updated_at=attribute.updated_at,
            # Unset fields are omitted.
            generation=(
                attribute.generation if call.microversion >= V2_21 else types.Unset
            ),
        )
        return select_view(view, call.fields)


class AttributeList(View):
    """A page of attributes."""

    attributes = [AttributeView]
    attributes_links = since(V2_4, optional([Link]))

    @classmethod
    def build(
        cls, attributes: Iterable[Attribute], call: Call, next_links: Any
    ) -> Self:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        """
        views = [AttributeView.build(attribute, call) for attribute in attributes]
        return cls(attributes=views, attributes_links=next_links)
