# SPDX-License-Identifier: Apache-2.0
"""Instances of Nova, as far as an audit reads them."""

from collections.abc import Collection

from cyborg_lite.clients.nova import Nova
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.model.arqs.instance_recovery import NovaInstance
from tests.builders.rows import PROJECT


class FakeInstances(Nova):
    """Host of each instance by uuid; None: the instance has no host."""

    def __init__(self) -> None:
        self.hosts: dict[str, str | None] = {}
        self.migrations: set[str] = set()
        self.busy: set[str] = set()
        """Instances with a running task."""
        self.profiles: dict[str, str] = {}
        """Device profile that the flavor of an instance names."""
        self.project = PROJECT
        self.is_down = False
        self.configured = True
        self.hidden = False
        """True: instances of other projects are not visible."""

    def find_missing_instances(self, uuids: Collection[str]) -> frozenset[str] | None:
        if self.is_down:
            raise ServiceUnavailable(what='Nova')
        if self.hidden:
            raise RemoteError(service='Nova', status=403, reason='no admin')
        return frozenset(set(uuids) - set(self.hosts)) if self.configured else None

    def is_placed(self, uuid: str) -> bool | None:
        if self.is_down:
            raise ServiceUnavailable(what='Nova')
        return self.hosts.get(uuid) is not None if self.configured else None

    def find_settled_node(self, uuid: str) -> str | None:
        if self.is_down:
            raise ServiceUnavailable(what='Nova')
        is_settled = self.configured and uuid not in self.busy
        return self.hosts.get(uuid) if is_settled else None

    def is_migration(self, uuid: str) -> bool:
        return uuid in self.migrations

    def describe_instance(self, uuid: str) -> NovaInstance | None:
        if uuid not in self.hosts:
            return None
        return NovaInstance(
            self.hosts[uuid],
            self.project,
            self.profiles.get(uuid),
            'active',
            'rebooting' if uuid in self.busy else None,
        )
