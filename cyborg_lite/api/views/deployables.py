# SPDX-License-Identifier: Apache-2.0
"""Deployables as clients read them."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from wsme import types

from cyborg_lite.api.links import Links
from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import JSON_TEXT, UUID, nullable, optional, since
from cyborg_lite.model.devices import DeployableRecord


class DeployableView(types.Base):  # type: ignore[misc]  # untyped base
    uuid = UUID
    parent_id = nullable(int)
    root_id = nullable(int)
    name = str
    num_accelerators = int
    device_id = int
    attributes_list = JSON_TEXT
    rp_uuid = nullable(UUID)
    driver_name = nullable(str)
    bitstream_id = nullable(UUID)
    links = [Link]  # noqa: RUF012  # a type, as WSME has it
    created_at = datetime
    updated_at = nullable(datetime)

    @classmethod
    def showing(cls, deployable: DeployableRecord, links: Links) -> Self:
        attributes = [{one.key: one.value} for one in deployable.attributes]
        return cls(
            uuid=deployable.uuid,
            parent_id=deployable.parent_id,
            root_id=deployable.root_id,
            name=deployable.name,
            num_accelerators=deployable.num_accelerators,
            device_id=deployable.device_id,
            attributes_list=json.dumps(attributes),
            rp_uuid=deployable.rp_uuid,
            driver_name=deployable.driver_name,
            bitstream_id=deployable.bitstream_id,
            links=_links(links, deployable.uuid),
            created_at=deployable.created_at,
            updated_at=deployable.updated_at,
        )


def _links(links: Links, uuid: str) -> list[Link]:
    bookmark = Link(href=links.to(f'deployables/{uuid}'), rel='bookmark')
    return [*Link.to_self(links, f'v2/deployables/{uuid}'), bookmark]


class DeployableList(types.Base):  # type: ignore[misc]  # untyped base
    deployables = [DeployableView]  # noqa: RUF012  # a type, as WSME has it
    deployables_links = since(V2_4, optional([Link]))

    @classmethod
    def showing(
        cls, deployables: Iterable[DeployableRecord], links: Links, more: Any
    ) -> Self:
        """:param more: as ``paging.next_page`` has it"""
        shown = [DeployableView.showing(one, links) for one in deployables]
        return cls(deployables=shown, deployables_links=more)
