# SPDX-License-Identifier: Apache-2.0
"""The resource providers that the service created in Placement."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from devstack.launcher.configuration import HOST
from devstack.launcher.failure import LaunchFailed
from devstack.launcher.rest import Service


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A resource provider that the service created in Placement."""

    uuid: str
    name: str
    resource_class: str
    total: int
    reserved: int  # of the total; instances cannot have them
    traits: tuple[str, ...]
    smallest: int = 1  # units of an allocation: the size of a group

    @property
    def is_usable(self) -> bool:
        """Return whether an instance can have a unit of it."""
        return self.total > self.reserved

    @property
    def own_trait(self) -> str:
        """The trait that identifies the type of the device in its resource class."""
        names = [name for name in self.traits if name.startswith('CUSTOM_')]
        # Such a trait stands for a state or for a selector.
        return next(name for name in names if not name.startswith('CUSTOM_CYBORG_'))


def list_accelerators(placement: Service) -> Iterator[Accelerator]:
    """Yield the providers below the compute node that have an inventory."""
    (node,) = _read(placement, f'?name={HOST}')['resource_providers']
    for provider in _read(placement, f'?in_tree={node["uuid"]}')['resource_providers']:
        inventories = _read(placement, f'/{provider["uuid"]}/inventories')
        traits = _read(placement, f'/{provider["uuid"]}/traits')['traits']
        for resource_class, record in inventories['inventories'].items():
            if any(trait.startswith('CUSTOM_') for trait in traits):
                yield Accelerator(
                    uuid=provider['uuid'],
                    name=provider['name'],
                    resource_class=resource_class,
                    total=record['total'],
                    reserved=record['reserved'],
                    traits=tuple(sorted(traits)),
                    smallest=record['min_unit'],
                )


# Any: the body is JSON.
def _read(placement: Service, path: str) -> Any:
    answer = placement.ask('GET', f'/resource_providers{path}')
    if answer.status != 200:
        raise LaunchFailed(f'Placement answers {answer} to a GET of {path}')
    return answer.body
