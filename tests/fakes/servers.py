# SPDX-License-Identifier: Apache-2.0
"""The servers that Nova has, as far as an audit asks for them."""

from collections.abc import Collection

from cyborg_lite.exceptions import ServiceUnavailable


class FakeServers:
    """``None`` for a host: the server is on none."""

    def __init__(self) -> None:
        self.hosts: dict[str, str | None] = {}
        self.away = False
        self.configured = True

    def missing(self, uuids: Collection[str]) -> frozenset[str] | None:
        if self.away:
            raise ServiceUnavailable(what='Nova')
        return frozenset(set(uuids) - set(self.hosts)) if self.configured else None

    def is_placed(self, uuid: str) -> bool | None:
        if self.away:
            raise ServiceUnavailable(what='Nova')
        return self.hosts.get(uuid) is not None if self.configured else None
