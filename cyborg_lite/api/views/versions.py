# SPDX-License-Identifier: Apache-2.0
"""The version documents, which need no token."""

from typing import Any, Final, Self

from cyborg_lite.api.links import Links
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM
from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.view import View

_RANGE: Final[dict[str, Any]] = {
    'status': 'CURRENT',
    'max_version': str(MAXIMUM),
    'min_version': str(MINIMUM),
}


class VersionView(View):
    """A version of the API with its range of microversions."""

    id = str
    links = [Link]
    max_version = str
    min_version = str
    status = str

    @classmethod
    def build_bare(cls, links: Links) -> Self:
        """Build the document ``/v2``: clients require exactly these five keys."""
        return cls(id='v2.0', links=Link.build_self_links(links, 'v2/'), **_RANGE)

    @classmethod
    def build_for_root(cls, links: Links) -> Self:
        """Build the entry of the version in the root document."""
        return cls(id='v2', links=Link.build_self_links(links, 'v2'), **_RANGE)


class RootView(View):
    """The service with the versions of its API."""

    name = str
    description = str
    versions = [VersionView]
    default_version = VersionView

    @classmethod
    def build(cls, links: Links) -> Self:
        """Build the view."""
        return cls(
            # Clients identify the service by the name of the original project.
            name='OpenStack Cyborg API',
            description='Management of accelerators: GPUs, FPGAs and other devices.',
            versions=[VersionView.build_for_root(links)],
            default_version=VersionView.build_for_root(links),
        )
