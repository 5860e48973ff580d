# SPDX-License-Identifier: Apache-2.0
"""The version documents, which need no token."""

from cyborg_lite.api.call.call import Call
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM
from cyborg_lite.api.views.view import LINKS, View


class VersionView(View):
    """A version of the API with its range of microversions."""

    id = str
    links = LINKS
    max_version = str
    min_version = str
    status = str


class RootView(View):
    """The service with the versions of its API."""

    name = str
    description = str
    versions = [VersionView]
    default_version = VersionView


def build_version(call: Call, identifier: str, path: str) -> VersionView:
    """Return the range of microversions; clients require exactly these five keys.

    :param path: of the version document, as clients expect it in this place
    """
    return VersionView(
        id=identifier,
        links=call.links.build_self_links(path),
        max_version=str(MAXIMUM),
        min_version=str(MINIMUM),
        status='CURRENT',
    )
