# SPDX-License-Identifier: Apache-2.0
"""Daemons in the responses of the API."""

from datetime import datetime

from cyborg_lite.api.views.link import NEXT_LINKS
from cyborg_lite.api.views.shapes import UUID, enum_of
from cyborg_lite.api.views.view import ListView, View
from cyborg_lite.model.services import ServiceState


class ServiceView(View):
    """A daemon on a host."""

    uuid = UUID
    binary = str
    host = str
    state = enum_of(ServiceState)
    version = str
    started_at = datetime
    heartbeat_at = datetime


class ServiceList(ListView):
    """A page of daemons."""

    services = [ServiceView]
    services_links = NEXT_LINKS
