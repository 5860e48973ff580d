# SPDX-License-Identifier: Apache-2.0
"""The documents by which a client finds out what is served, without a token."""

from typing import Any, Final, Self

from wsme import types

from cyborg_lite.api.links import Links
from cyborg_lite.api.microversion import MAXIMUM, MINIMUM
from cyborg_lite.api.views.link import Link

_RANGE: Final[dict[str, Any]] = {
    'status': 'CURRENT',
    'max_version': str(MAXIMUM),
    'min_version': str(MINIMUM),
}


class VersionView(types.Base):  # type: ignore[misc]  # untyped base
    id = str
    links = [Link]  # noqa: RUF012  # a type, as WSME has it
    max_version = str
    min_version = str
    status = str

    @classmethod
    def of_itself(cls, links: Links) -> Self:
        """As ``/v2`` shows it; clients want it bare and with these five keys."""
        return cls(id='v2.0', links=Link.to_self(links, 'v2/'), **_RANGE)

    @classmethod
    def in_root(cls, links: Links) -> Self:
        return cls(id='v2', links=Link.to_self(links, 'v2'), **_RANGE)


class RootView(types.Base):  # type: ignore[misc]  # untyped base
    name = str
    description = str
    versions = [VersionView]  # noqa: RUF012  # a type, as WSME has it
    default_version = VersionView

    @classmethod
    def showing(cls, links: Links) -> Self:
        return cls(
            # Clients know the service by the name of the project that made its API.
            name='OpenStack Cyborg API',
            description='Management of accelerators: GPUs, FPGAs and other devices.',
            versions=[VersionView.in_root(links)],
            default_version=VersionView.in_root(links),
        )
