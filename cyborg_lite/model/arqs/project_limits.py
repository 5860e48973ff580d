# SPDX-License-Identifier: Apache-2.0
"""Limits of a project: the resources that are counted, and the comparison."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cyborg_lite.errors.arqs import ProjectLimitExceeded
from cyborg_lite.model.profiles.device_profiles import Group

ARQS: Final = 'accelerator_requests'
"""Name in Keystone of the number of ARQs."""

UNBOUND: Final = 'unbound_requests'
"""Name of the number of ARQs that were never bound. It has no limit in Keystone."""

UNLIMITED: Final = -1


def name_units(resource_class: str) -> str:
    """Return the name in Keystone of the units of a resource class."""
    return f'class:{resource_class}'


def list_resources(groups: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """Return the resources that ARQs of groups use, by their names in Keystone."""
    classes = (Group.parse(group).requirements.resource_classes for group in groups)
    return frozenset({ARQS, *(name_units(name) for names in classes for name in names)})


def count_resources(groups: Iterable[Mapping[str, str]]) -> Counter[str]:
    """Return what the ARQs of groups use, by the names of the resources."""
    numbers: Counter[str] = Counter()
    for group in groups:
        requirements = Group.parse(group).requirements
        numbers[ARQS] += requirements.arq_count
        for name, amount in requirements.amounts:
            numbers[name_units(name)] += amount
    return numbers


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """Use of a resource by a project, and its limit."""

    resource: str
    limit: int  # -1: unlimited
    used: int

    def allows(self, further: int) -> bool:
        """Check whether the project may use so many more of the resource."""
        return self.limit == UNLIMITED or self.used + further <= self.limit


@dataclass(frozen=True, slots=True)
class ProjectLimits:
    """The limits of a project, by the names of the resources in Keystone."""

    project_id: str
    limits: Mapping[str, int] | None  # None: Keystone has no limits
    unbound: int = UNLIMITED  # ARQs that were never bound

    def check(self, used: Mapping[str, int], names: Iterable[str]) -> None:
        """Check the use of some resources; a resource without a limit has 0.

        :param used: with what the project requests
        :raises ProjectLimitExceeded: the project would exceed a limit
        """
        limits = {UNBOUND: self.unbound}
        if self.limits is not None:
            limits |= {name: self.limits.get(name, 0) for name in sorted(names)}
        excesses = [
            f'{name} would be {used.get(name, 0)}, the limit is {limit}'
            for name, limit in limits.items()
            if limit != UNLIMITED and used.get(name, 0) > limit
        ]
        if excesses:
            raise ProjectLimitExceeded(
                project=self.project_id, excesses='; '.join(excesses)
            )
