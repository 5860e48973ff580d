# SPDX-License-Identifier: Apache-2.0
"""Rules about the attach handles that the Nova of a host can attach.

Nova attaches ``MDEV`` handles since 34.0.0. An older Nova ignores them, and with them
all other handles of the instance. Nova 34 sets the trait ``OWNER_NOVA`` on the provider
of the compute node, and an older Nova does not.

Nova 34 attaches every ``PCI`` handle with ``managed='yes'``. Libvirt then takes a
function with ``managed`` false from its driver, which breaks the function.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from cyborg_lite.clients.placement import Placement
from cyborg_lite.errors.arqs import HandleNotAttachable
from cyborg_lite.model.capacity.explanations import ProviderCapacity, ReasonCode
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import HandleType
from cyborg_lite.model.traits import OWNER_NOVA

_CACHE_SECONDS: Final = 60.0

_MDEV_TEXT: Final = (
    'Its mdevs reach no instance: the compute node {host} lacks trait OWNER_NOVA, so '
    'its Nova is older than 34.0.0. Upgrade Nova, or set [nova] attaches_mdev.'
)
_TARGETS: Final = (HandleType.NVMF, HandleType.VHOST_USER)
_TARGET_TEXT: Final = (
    'Nova attaches no storage targets. Set accel:attach_target to host or none in the '
    'device profile, or use a host that [conductor] hosts_without_compute names.'
)
_MDEV_OFF_TEXT: Final = (
    'Its mdevs reach no instance: [nova] attaches_mdev is false. Set it to auto.'
)
_MANAGED_TEXT: Final = (
    'Its functions must keep their driver, but Nova detaches them from it. Set [nova] '
    'attaches_unmanaged only if Nova reads the key managed of a handle.'
)


@dataclass(frozen=True, slots=True)
class NovaRules:
    """Options of the operator about what Nova attaches."""

    attaches_mdev: bool | None = None  # None: the trait of the compute node decides
    attaches_unmanaged: bool = False
    hosts_without_compute: Collection[str] = ()  # patterns of hostnames

    def uses_nova(self, hostname: str) -> bool:
        """Check whether Nova attaches the handles of a host."""
        return not any(
            fnmatchcase(hostname, pattern) for pattern in self.hosts_without_compute
        )


class NovaSupport:
    """Checks handles that are meant for guests. It caches the trait of each host."""

    def __init__(
        self,
        placement: Placement,
        rules: NovaRules,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._placement = placement
        self._rules = rules
        self._clock = clock
        self._lock = threading.Lock()
        # By hostname: whether its Nova attaches mdevs, and the time of the answer.
        self._answers: dict[str, tuple[bool, float]] = {}

    def check_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        """Check that Nova can attach all handles that are meant for the guest.

        Sends one request to Placement for each host with mdevs that is not cached.

        :raises HandleNotAttachable: Nova drops or breaks one of the handles
        :raises ServiceUnavailable: Placement does not answer
        """
        for handle in handles:
            host = handle.hostname
            if not handle.for_guest or not self._rules.uses_nova(host):
                continue
            reason = None
            if handle.type == HandleType.MDEV and not self._attaches_mdev(host):
                reason = self._explain_mdev(host)
            elif handle.type in _TARGETS:
                reason = _TARGET_TEXT
            elif not handle.managed and not self._rules.attaches_unmanaged:
                reason = _MANAGED_TEXT
            if reason is not None:
                reason = f'Nova cannot attach {handle.deployable_name}. {reason}'
                raise HandleNotAttachable(reason=reason)

    def close_capacities(
        self, capacities: Collection[ProviderCapacity]
    ) -> tuple[ProviderCapacity, ...]:
        """Close the providers whose handles Nova cannot attach, for guests only.

        Sends one request to Placement if a provider has mdevs and the trait decides.

        :raises ServiceUnavailable: Placement does not answer
        """
        hosts_with_trait: frozenset[str] = frozenset()
        by_trait = self._rules.attaches_mdev is None
        if by_trait and any(
            item.has_mdev and self._rules.uses_nova(item.hostname)
            for item in capacities
        ):
            hosts_with_trait = self._placement.list_names_with_trait(OWNER_NOVA)
        return tuple(self._close(capacity, hosts_with_trait) for capacity in capacities)

    def _close(
        self, capacity: ProviderCapacity, hosts_with_trait: frozenset[str]
    ) -> ProviderCapacity:
        host, rules = capacity.hostname, self._rules
        if not rules.uses_nova(host):
            return capacity
        code, text = None, ''
        attaches_mdev = rules.attaches_mdev
        if attaches_mdev is None:
            attaches_mdev = host in hosts_with_trait
        if capacity.has_mdev and not attaches_mdev:
            code, text = ReasonCode.MDEV_NOT_ATTACHED, self._explain_mdev(host)
        elif capacity.has_unmanaged and not rules.attaches_unmanaged:
            code, text = ReasonCode.UNMANAGED_NOT_ATTACHED, _MANAGED_TEXT
        return replace(capacity, closed_for_guest=code, closed_for_guest_text=text)

    def _explain_mdev(self, host: str) -> str:
        if self._rules.attaches_mdev is False:
            return _MDEV_OFF_TEXT
        return _MDEV_TEXT.format(host=host)

    def _attaches_mdev(self, host: str) -> bool:
        if self._rules.attaches_mdev is not None:
            return self._rules.attaches_mdev
        now = self._clock()
        with self._lock:
            answer, answered_at = self._answers.get(host, (False, -_CACHE_SECONDS))
            if host in self._answers and now - answered_at < _CACHE_SECONDS:
                return answer
        answer = host in self._placement.list_names_with_trait(OWNER_NOVA, host)
        with self._lock:
            self._answers[host] = answer, now
        return answer
