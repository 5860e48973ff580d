# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables in the responses of the API."""

from datetime import datetime

from cyborg_lite.api.microversion import V2_21
from cyborg_lite.api.views.link import LINKS, NEXT_LINKS
from cyborg_lite.api.views.shapes import UUID, nullable, since
from cyborg_lite.api.views.view import ListView, View


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
    generation = since(V2_21, int)


class AttributeList(ListView):
    """A page of attributes."""

    attributes = [AttributeView]
    attributes_links = NEXT_LINKS
