# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables as clients read them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from wsme import types

from cyborg_lite.api.links import Links
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import UUID, nullable, optional, since
from cyborg_lite.model.devices import Attribute


class AttributeView(types.Base):  # type: ignore[misc]  # untyped base
    uuid = UUID
    deployable_id = int
    key = str
    value = str
    links = [Link]  # noqa: RUF012  # a type, as WSME has it
    created_at = datetime
    updated_at = nullable(datetime)

    @classmethod
    def showing(cls, attribute: Attribute, links: Links) -> Self:
        return cls(
            uuid=attribute.uuid,
            deployable_id=attribute.deployable_id,
            key=attribute.key,
            value=attribute.value,
            links=Link.to_self(links, f'v2/attributes/{attribute.uuid}'),
            created_at=attribute.created_at,
            updated_at=attribute.updated_at,
        )


class AttributeList(types.Base):  # type: ignore[misc]  # untyped base
    attributes = [AttributeView]  # noqa: RUF012  # a type, as WSME has it
    attributes_links = since(V2_4, optional([Link]))

    @classmethod
    def showing(cls, attributes: Iterable[Attribute], links: Links, more: Any) -> Self:
        """:param more: as ``paging.next_page`` has it"""
        shown = [AttributeView.showing(one, links) for one in attributes]
        return cls(attributes=shown, attributes_links=more)
