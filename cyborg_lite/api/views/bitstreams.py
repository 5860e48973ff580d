# SPDX-License-Identifier: Apache-2.0
"""Bitstreams as operators read them, before they name one of them."""

from collections.abc import Iterable
from typing import Self

from wsme import types

from cyborg_lite.api.views.shapes import UUID, nullable
from cyborg_lite.model.bitstream_list import ListedBitstream


class BitstreamView(types.Base):  # type: ignore[misc]  # untyped base
    """What the image says of itself is null where it says nothing; size is in bytes."""

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
    reasons = [str]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, one: ListedBitstream) -> Self:
        said = one.properties
        return cls(
            image_uuid=one.image_uuid,
            image_name=one.image_name,
            size=one.size,
            name=said.get('bs-name'),
            uuid=said.get('bs-uuid'),
            vendor=said.get('vendor'),
            board=said.get('board'),
            shell_id=said.get('shell_id'),
            version=said.get('version'),
            driver=said.get('driver'),
            driver_ver=said.get('driver_ver'),
            driver_path=said.get('driver_path'),
            description=said.get('description'),
            region_uuid=said.get('region_uuid'),
            function_uuid=said.get('function_uuid'),
            function_name=said.get('function_name'),
            accepted=not one.reasons,
            reasons=list(one.reasons),
        )


class BitstreamList(types.Base):  # type: ignore[misc]  # untyped base
    bitstreams = [BitstreamView]  # noqa: RUF012  # a type, as WSME has it

    @classmethod
    def showing(cls, bitstreams: Iterable[ListedBitstream]) -> Self:
        return cls(bitstreams=[BitstreamView.showing(one) for one in bitstreams])
