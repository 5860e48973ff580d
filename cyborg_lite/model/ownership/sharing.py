# SPDX-License-Identifier: Apache-2.0
"""Conflicts with another service that uses the same resource classes on a host."""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from cyborg_lite.model.providers.providers import TreeNode


class SharingProblem(enum.StrEnum):
    """Conflicts that an audit reports."""

    SHARED_CLASS = 'shared-class'
    NO_ARQ = 'no-arq'


@dataclass(frozen=True, slots=True)
class OwnProvider:
    """A provider of this service, and the instances whose ARQs name it."""

    uuid: str
    name: str
    resource_class: str
    instances: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SharingFinding:
    """A provider that this service and another one use, or would use."""

    problem: SharingProblem
    hostname: str
    provider_uuid: str
    provider_name: str
    reason: str
    instance_uuid: str | None = None  # None: the problem is not of one instance


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


def list_unknown_consumers(
    provider: OwnProvider, consumers: Collection[str]
) -> tuple[str, ...]:
    """Return the consumers of a provider that have no ARQ for it."""
    return tuple(sorted({*consumers} - provider.instances))


def find_foreign_instances(
    hostname: str, provider: OwnProvider, nodes: Mapping[str, str | None]
) -> tuple[SharingFinding, ...]:
    """Return a finding for each instance on the host without an ARQ.

    :param nodes: compute nodes of the instances that have no running task
    """
    name = provider.resource_class
    return tuple(
        SharingFinding(
            SharingProblem.NO_ARQ,
            hostname,
            provider.uuid,
            provider.name,
            f'Instance {instance} has allocated {name} without an ARQ. If its flavor '
            f'requests {name}, it has no device of this service: add '
            'trait:OWNER_CYBORG=forbidden to the flavor, and create the instance '
            'again. If the database was restored from a backup, the instance may use '
            'a device that the database shows as free.',
            instance,
        )
        for instance, node in nodes.items()
        if node == hostname
    )
