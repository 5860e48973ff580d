# SPDX-License-Identifier: Apache-2.0
"""Allocations on providers of this service that no ARQ explains."""

import enum
from dataclasses import dataclass
from datetime import datetime


class AllocationProblem(enum.StrEnum):
    """Problems of such an allocation that an audit reports."""

    NO_ARQ = 'no-arq'
    """Nova has the server on the host of the provider."""
    LEAKED = 'leaked-allocation'
    """Nova has no such server."""


@dataclass(frozen=True, slots=True)
class UnownedAllocation:
    """Units of one provider that a consumer without an ARQ has allocated."""

    consumer_uuid: str
    rp_uuid: str
    provider_name: str
    hostname: str
    resource_class: str
    amount: int
    # When an audit first confirmed it by a second look. None: not confirmed, because
    # Nova may be creating or deleting the server.
    unowned_since: datetime | None = None
    # None: Nova is not configured, changes the server, or has it on another host.
    has_server: bool | None = None

    @property
    def key(self) -> tuple[str, str, str]:
        """The consumer, the provider and the resource class."""
        return self.consumer_uuid, self.rp_uuid, self.resource_class

    @property
    def problem(self) -> AllocationProblem | None:
        """The problem; None: it is not confirmed, or only Nova could tell."""
        if self.unowned_since is None or self.has_server is None:
            return None
        return AllocationProblem.NO_ARQ if self.has_server else AllocationProblem.LEAKED

    @property
    def reason(self) -> str:
        """The problem with its time, and the remedy."""
        units = f'{self.amount} {self.resource_class}'
        since = (
            f'{self.unowned_since:%Y-%m-%d %H:%M} UTC' if self.unowned_since else '-'
        )
        if not self.has_server:
            return (
                f'Consumer {self.consumer_uuid} has allocated {units} without an ARQ, '
                f'since {since} at the latest, and Nova has no such server. The units '
                'are lost to new instances until the allocation is deleted: run '
                'cyborg-lite-manage audit --apply.'
            )
        return (
            f'Instance {self.consumer_uuid} has allocated {units} without an ARQ, '
            f'since {since} at the latest. If its flavor requests '
            f'{self.resource_class}, it has no device of this service: add '
            'trait:OWNER_CYBORG=forbidden to the flavor, and create the instance '
            'again. If the database was restored from a backup, the instance may use '
            'a device that the database shows as free.'
        )
