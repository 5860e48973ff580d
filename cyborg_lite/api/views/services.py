# SPDX-License-Identifier: Apache-2.0
"""Daemons as operators read them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from wsme import types

from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.shapes import UUID, one_of, optional, since
from cyborg_lite.model.services import Service, ServiceState


class ServiceView(types.Base):  # type: ignore[misc]  # untyped base
    uuid = UUID
    binary = str
    host = str
    state = one_of(ServiceState)
    version = str
    started_at = datetime
    heartbeat_at = datetime

    @classmethod
    def showing(cls, service: Service) -> Self:
        return cls(
            uuid=service.uuid,
            binary=service.binary,
            host=service.host,
            state=service.state.value,
            version=service.version,
            started_at=service.started_at,
            heartbeat_at=service.heartbeat_at,
        )


class ServiceList(types.Base):  # type: ignore[misc]  # untyped base
    services = [ServiceView]  # noqa: RUF012  # a type, as WSME has it
    services_links = since(V2_4, optional([Link]))

    @classmethod
    def showing(cls, services: Iterable[Service], more: Any) -> Self:
        """:param more: as ``paging.next_page`` has it"""
        shown = [ServiceView.showing(one) for one in services]
        return cls(services=shown, services_links=more)
