# SPDX-License-Identifier: Apache-2.0
"""Conflicts with another service that uses the same resource classes on a host."""

import enum
from collections.abc import Collection
from dataclasses import dataclass

from cyborg_lite.model.providers.providers import TreeNode


class SharingProblem(enum.StrEnum):
    """Conflicts that an audit reports."""

    SHARED_CLASS = 'shared-class'


@dataclass(frozen=True, slots=True)
class OwnProvider:
    """A provider of this service."""

    uuid: str
    resource_class: str


@dataclass(frozen=True, slots=True)
class SharingFinding:
    """A provider that this service and another one use, or would use."""

    problem: SharingProblem
    hostname: str
    rp_uuid: str
    provider_name: str
    reason: str


def find_shared_class(
    hostname: str, node: TreeNode, classes: Collection[str], own: Collection[str]
) -> SharingFinding | None:
    """Return a finding if a foreign provider has a resource class of this service.

    :param classes: resource classes of the foreign provider
    :param own: resource classes of this service on the host
    """
    shared = ' and '.join(sorted({*classes} & {*own}))
    if not shared:
        return None
    reason = (
        f'The provider of another service also has {shared}. Nova takes each '
        f'allocation of {shared} on the host for its own. Set vgpu_resource_class of '
        'the driver or mdev_class in nova.conf to a custom class.'
    )
    problem = SharingProblem.SHARED_CLASS
    return SharingFinding(problem, hostname, node.uuid, node.name, reason)
