# SPDX-License-Identifier: Apache-2.0
"""Deployables as clients read them."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from wsme import types

from cyborg_lite.api.links import Links
from cyborg_lite.api.views.link import Link
from cyborg_lite.model.devices import DeployableRecord


class DeployableView(types.Base):  # type: ignore[misc]  # untyped base
    uuid = str
    parent_id = int
    root_id = int
    name = str
    num_accelerators = int
    device_id = int
    attributes_list = str
    rp_uuid = str
    driver_name = str
    bitstream_id = str
    links = [Link]  # noqa: RUF012  # a type, as WSME has it
    created_at = datetime
    updated_at = datetime

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
    deployables_links = [Link]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(
        cls, deployables: Iterable[DeployableRecord], links: Links, more: Any
    ) -> Self:
        """:param more: as ``paging.next_page`` has it"""
        shown = [DeployableView.showing(one, links) for one in deployables]
        return cls(deployables=shown, deployables_links=more)
