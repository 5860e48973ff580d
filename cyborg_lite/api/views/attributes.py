# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables in the responses of the API."""

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
    """An attribute of a deployable."""

    uuid = UUID
    deployable_id = int
    key = str
    value = str
    links = [Link]  # noqa: RUF012  # a type, as WSME has it
    created_at = datetime
    updated_at = nullable(datetime)

    @classmethod
    def build(cls, attribute: Attribute, links: Links) -> Self:
        """Build the view."""
        return cls(
            uuid=attribute.uuid,
            deployable_id=attribute.deployable_id,
            key=attribute.key,
            value=attribute.value,
            links=Link.build_self_links(links, f'v2/attributes/{attribute.uuid}'),
            created_at=attribute.created_at,
            updated_at=attribute.updated_at,
        )


class AttributeList(types.Base):  # type: ignore[misc]  # untyped base
    """A page of attributes."""

    attributes = [AttributeView]  # noqa: RUF012  # a type, as WSME has it
    attributes_links = since(V2_4, optional([Link]))

    @classmethod
    def build(
        cls, attributes: Iterable[Attribute], links: Links, next_links: Any
    ) -> Self:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        """
        views = [AttributeView.build(attribute, links) for attribute in attributes]
        return cls(attributes=views, attributes_links=next_links)
