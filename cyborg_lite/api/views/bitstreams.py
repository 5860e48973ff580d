# SPDX-License-Identifier: Apache-2.0
"""Bitstreams in the responses of the API."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final

from wsme import types

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import V2_5
from cyborg_lite.api.views.shapes import UUID, nullable, since
from cyborg_lite.api.views.view import NEXT_LINKS, ListView, View

_PROPERTIES: Final = {'name': 'bs-name', 'uuid': 'bs-uuid'}
"""Properties of the image that have other names than their fields."""


class BitstreamView(View):
    """A bitstream; a property that the image does not have is null.

    ``size`` is in bytes.
    """

    image_uuid = UUID
    image_name = nullable(str)
    size = nullable(int)
    name = nullable(str)
    uuid = nullable(str)
    vendor = nullable(str)
    board = nullable(str)
    shell_id = nullable(str)
    version = nullable(str)
    driver = nullable(str)
    driver_ver = nullable(str)
    driver_path = nullable(str)
    description = nullable(str)
    region_uuid = nullable(str)
    function_uuid = nullable(str)
    function_name = nullable(str)
    accepted = bool
    reasons = [str]


class BitstreamList(ListView):
    """A page of the bitstreams in Glance."""

    bitstreams = [BitstreamView]
    bitstreams_links = since(V2_5, NEXT_LINKS)

    # Any: a namespace with the bitstreams of the page.
    @staticmethod
    def render_bitstreams(page: Any, call: Call) -> Iterator[SimpleNamespace]:
        """Return the bitstreams with their image properties as fields."""
        fields = [field.name for field in types.list_attributes(BitstreamView)]
        for bitstream in page.bitstreams:
            values = {
                field: bitstream.properties.get(_PROPERTIES.get(field, field))
                for field in fields
            } | {
                'image_uuid': bitstream.image_uuid,
                'image_name': bitstream.image_name,
                'size': bitstream.size,
                'accepted': not bitstream.reasons,
                'reasons': bitstream.reasons,
            }
            yield SimpleNamespace(**values)
