# SPDX-License-Identifier: Apache-2.0
"""Bitstreams in the responses of the API."""

from collections.abc import Iterable
from typing import Self

from cyborg_lite.api.views.selection import select_view
from cyborg_lite.api.views.shapes import UUID, nullable
from cyborg_lite.api.views.view import View
from cyborg_lite.model.bitstream_list import ListedBitstream


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

    @classmethod
    def build(cls, bitstream: ListedBitstream) -> Self:
        """Build the view."""
        properties = bitstream.properties
        return cls(
            image_uuid=bitstream.image_uuid,
            image_name=bitstream.image_name,
            size=bitstream.size,
            name=properties.get('bs-name'),
            uuid=properties.get('bs-uuid'),
            vendor=properties.get('vendor'),
            board=properties.get('board'),
            shell_id=properties.get('shell_id'),
            version=properties.get('version'),
            driver=properties.get('driver'),
            driver_ver=properties.get('driver_ver'),
            driver_path=properties.get('driver_path'),
            description=properties.get('description'),
            region_uuid=properties.get('region_uuid'),
            function_uuid=properties.get('function_uuid'),
            function_name=properties.get('function_name'),
            accepted=not bitstream.reasons,
            reasons=list(bitstream.reasons),
        )


class BitstreamList(View):
    """The bitstreams in Glance."""

    bitstreams = [BitstreamView]

    @classmethod
    def build(
        cls,
        bitstreams: Iterable[ListedBitstream],
        fields: frozenset[str] | None = None,
    ) -> Self:
        """Build the view.

        :param fields: the requested fields; None: all fields
        """
        views = [select_view(BitstreamView.build(item), fields) for item in bitstreams]
        return cls(bitstreams=views)
