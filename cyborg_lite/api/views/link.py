# SPDX-License-Identifier: Apache-2.0
"""An address in an answer."""

from typing import Self

from wsme import types

from cyborg_lite.api.links import Links


class Link(types.Base):  # type: ignore[misc]  # untyped base
    href = str
    rel = str

    @classmethod
    def to_self(cls, links: Links, path: str) -> list[Self]:
        """The one link that every object has."""
        return [cls(href=links.to(path), rel='self')]
