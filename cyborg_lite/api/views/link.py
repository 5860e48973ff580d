# SPDX-License-Identifier: Apache-2.0
"""Links in the responses of the API."""

from typing import Self

from cyborg_lite.api.links import Links
from cyborg_lite.api.views.view import View


class Link(View):
    """A URL with its relation."""

    href = str
    rel = str

    @classmethod
    def build_self_links(cls, links: Links, path: str) -> list[Self]:
        """Return the list with the ``self`` link of an object."""
        return [cls(href=links.build_url(path), rel='self')]
