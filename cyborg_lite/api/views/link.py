# SPDX-License-Identifier: Apache-2.0
"""Links in the responses of the API; ``api/call/links.py`` builds them."""

from typing import Final

from cyborg_lite.api.microversion import V2_4
from cyborg_lite.api.views.shapes import Json, optional, since
from cyborg_lite.api.views.view import View


class Link(View):
    """A URL with its relation."""

    href = str
    rel = str


LINKS: Final = Json([Link])

NEXT_LINKS: Final = since(V2_4, optional(LINKS))
"""The link to the next page of a list."""
