# SPDX-License-Identifier: Apache-2.0
"""Daemons in the responses of the API."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.selection import select_view
from cyborg_lite.api.views.shapes import UUID, enum_of, optional, since
from cyborg_lite.api.views.view import View
from cyborg_lite.model.services import Service, ServiceState


class ServiceView(View):
    """A daemon on a host."""

    uuid = UUID
    binary = str
    host = str
    state = enum_of(ServiceState)
    version = str
    started_at = datetime
    heartbeat_at = datetime

    @classmethod
    def build(cls, service: Service) -> Self:
        """Build the view."""
        return cls(
            uuid=service.uuid,
            binary=service.binary,
            host=service.host,
            state=service.state.value,
            version=service.version,
            started_at=service.started_at,
            heartbeat_at=service.heartbeat_at,
        )


class ServiceList(View):
    """A page of daemons."""

    services = [ServiceView]
    services_links = since(V2_4, optional([Link]))

    @classmethod
    def build(
        cls,
        services: Iterable[Service],
        next_links: Any,
        fields: frozenset[str] | None = None,
    ) -> Self:
        """Build the view.

        :param next_links: result of ``paging.build_next_link``
        :param fields: the requested fields; None: all fields
        """
        views = [select_view(ServiceView.build(item), fields) for item in services]
        return cls(services=views, services_links=next_links)
