# SPDX-License-Identifier: Apache-2.0
"""Client of Placement. A method sends one request unless its docstring differs."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import requests
from oslo_config import cfg

from cyborg_lite.clients import session
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.providers import (
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
)
from cyborg_lite.model.profiles.device_profiles import GroupRequirements
from cyborg_lite.model.providers.providers import (
    Inventories,
    ProviderInventory,
    TreeNode,
)

MICROVERSION: Final = '1.28'
"""Microversion of all requests; it requires Placement of Rocky or later.

1.14 has provider trees, 1.23 error codes, 1.26 inventories that are fully reserved, and
1.28 consumer generations.
"""

# A provider can get another parent. It requires Placement of Xena or later.
_MOVE_MICROVERSION: Final = '1.37'

# Groups may be served by several providers of a tree. It requires Rocky or later.
_NESTED_MICROVERSION: Final = '1.29'

# Inventories of several providers in one request. It requires Rocky or later.
_RESHAPE_MICROVERSION: Final = '1.30'
# Placement sets the inventories twice, so that allocations could move in between.
_RESHAPE_STEPS: Final = 2
# The user lacks the role ``service``, or Placement lacks the microversion.
_NO_RESHAPE: Final = frozenset({403, 404, 406})

_ERROR_KEY: Final = 'errors'  # in each answer of Placement with an error

_IN_USE_CODES: Final = frozenset(
    {
        'placement.inventory.inuse',
        'placement.resource_provider.inuse',
        'placement.resource_provider.cannot_delete_parent',
    }
)


@dataclass(frozen=True, slots=True)
class ProviderInventories:
    """Inventories of a provider, and the provider generation when they were read."""

    generation: int
    inventories: Inventories


@dataclass(frozen=True, slots=True)
class ProviderTraits:
    """Traits of a provider, and the provider generation when they were read."""

    generation: int
    traits: frozenset[str]


@dataclass(frozen=True, slots=True)
class Consumer:
    """An instance, or another consumer of allocations."""

    uuid: str
    project_id: str
    user_id: str
    generation: int
    # amounts by provider uuid and resource class
    allocations: Mapping[str, Mapping[str, int]]

    @property
    def providers(self) -> frozenset[str]:
        """Uuids of the providers with an allocation."""
        return frozenset(self.allocations)


class Placement:
    """Client of Placement.

    Every method raises ServiceUnavailable if Placement or Keystone does not answer, and
    RemoteError if either returns an unexpected status. Methods that read or change a
    provider raise PlacementConflict if it does not exist any more, or if it has another
    generation.
    """

    def __init__(self, remote: session.Remote) -> None:
        self._remote = remote
        # Paths of custom traits and resource classes that exist. They are cached for
        # the life of the process, because operators do not delete them in practice.
        self._existing_names: set[str] = set()
        self._lock = threading.Lock()
        self._can_reshape = True

    @classmethod
    def from_config(cls, conf: cfg.ConfigOpts) -> Self:
        """Create a client from section ``[placement]``.

        :raises ConfigurationError: the section is empty
        """
        remote = session.connect(
            conf, 'placement', 'Placement', MICROVERSION, _ERROR_KEY
        )
        if remote is None:
            raise ConfigurationError(
                reason='Section [placement] sets neither auth_type nor '
                'endpoint_override.'
            )
        return cls(remote)

    def observe_requests(self, observer: Callable[[str, int | None], None]) -> None:
        """Call ``observer`` after each request, with the method and the HTTP status.

        The status is None if no response was received.
        """
        self._remote.observer = observer

    def check_connection(self) -> None:
        """Check that Placement answers, and accepts the user of this service."""
        self._find_providers({'name': 'cyborg-lite'})

    # --- providers ---

    def find_provider(self, uuid: str) -> TreeNode | None:
        """Return the provider, or None if it does not exist."""
        response = self._remote.send('GET', _provider_path(uuid), accept=(404,))
        return (
            None if response.status_code == 404 else _node(self._remote.read(response))
        )

    def find_provider_by_name(self, name: str) -> TreeNode | None:
        """Return the provider with the name, or None if it does not exist."""
        nodes = self._list_providers({'name': name})
        return nodes[0] if nodes else None

    def list_tree(self, uuid: str, trait: str | None = None) -> tuple[TreeNode, ...]:
        """Return all providers in the tree of a provider.

        :param trait: return only the providers with this trait
        """
        return self._list_providers(
            {'in_tree': uuid} if trait is None else {'in_tree': uuid, 'required': trait}
        )

    def list_providers(self, trait: str) -> tuple[TreeNode, ...]:
        """Return the providers of all trees that have a trait."""
        return tuple(map(_node, self._find_providers({'required': trait})))

    def list_hosts_with_trait(self, trait: str) -> frozenset[str]:
        """Return names of root providers whose trees contain a provider with the trait.

        Sends two requests.
        """
        roots = {node.root_uuid for node in self._list_providers({'required': trait})}
        if not roots:
            return frozenset()
        return frozenset(
            node.name for node in self._list_providers({}) if node.uuid in roots
        )

    def list_names_with_trait(
        self, trait: str, name: str | None = None
    ) -> frozenset[str]:
        """Return the names of the providers with a trait.

        The result is empty if the trait does not exist.

        :param name: return only a provider with this name
        """
        query = {'required': trait}
        if name is not None:
            query['name'] = name
        return frozenset(item['name'] for item in self._find_providers(query))

    def create_provider(
        self, uuid: str, name: str, parent_uuid: str | None
    ) -> TreeNode:
        """Create a provider.

        :raises ProviderExists: the name or uuid is in use
        """
        body = {'uuid': uuid, 'name': name}
        if parent_uuid is not None:
            body['parent_provider_uuid'] = parent_uuid
        path = '/resource_providers'
        response = self._remote.send('POST', path, body, accept=(409,))
        if response.status_code == 409:
            raise ProviderExists(name=name)
        return _node(self._remote.read(response))

    def rename_provider(self, node: TreeNode, name: str) -> TreeNode:
        """Rename a provider and keep its parent.

        :raises ProviderExists: the name is in use
        """
        return self._update_provider(self._remote, node.uuid, name, node.parent_uuid)

    def move_provider(
        self, node: TreeNode, name: str, parent_uuid: str | None
    ) -> TreeNode:
        """Move a provider, with its subtree, below another parent, and rename it.

        :raises ProviderExists: the name is in use
        :raises RemoteError: Placement is too old to move providers (status 406)
        """
        remote = self._remote.with_microversion(_MOVE_MICROVERSION)
        return self._update_provider(remote, node.uuid, name, parent_uuid)

    def _update_provider(
        self, remote: session.Remote, uuid: str, name: str, parent_uuid: str | None
    ) -> TreeNode:
        body = {'name': name, 'parent_provider_uuid': parent_uuid}
        response = remote.send('PUT', _provider_path(uuid), body, accept=(404, 409))
        if response.status_code == 404:
            raise PlacementConflict(provider=uuid)
        if response.status_code == 409:
            raise ProviderExists(name=name)
        return _node(self._remote.read(response))

    def delete_provider(self, uuid: str) -> None:
        """Delete a provider. A provider that does not exist is no error.

        :raises ProviderInUse: the provider has allocations or children
        """
        response = self._remote.send('DELETE', _provider_path(uuid), accept=(404, 409))
        if response.status_code == 409:
            raise self._to_conflict(uuid, response)

    # --- inventories and traits ---

    def get_inventories(self, uuid: str) -> ProviderInventories:
        """Return the inventories of a provider."""
        return _inventories(self._send(uuid, 'GET', 'inventories'))

    def set_inventories(
        self, uuid: str, generation: int, inventories: Inventories
    ) -> ProviderInventories:
        """Replace all inventories of a provider.

        :raises ProviderInUse: a resource class with allocations would be removed
        """
        body = _inventories_body(generation, inventories)
        return _inventories(self._send(uuid, 'PUT', 'inventories', body))

    def fill_providers(
        self, targets: Mapping[str, ProviderInventories]
    ) -> Mapping[str, int] | None:
        """Set the inventories of several providers without allocations, or of none.

        :param targets: by uuid: the generation of the provider, and its inventories,
            which are not empty
        :returns: the new generations by uuid; None: Placement has refused, and
            ``set_inventories`` shows why
        :raises PlacementConflict: a provider generation has changed
        """
        if not self._can_reshape:
            return None
        inventories = {
            uuid: _inventories_body(target.generation, target.inventories)
            for uuid, target in targets.items()
        }
        body = {'inventories': inventories, 'allocations': {}}
        accept = {400, 409, *_NO_RESHAPE}
        remote = self._remote.with_microversion(_RESHAPE_MICROVERSION)
        response = remote.send('POST', '/reshaper', body, accept=accept)
        if response.status_code in accept:
            if _error_code(response) == 'placement.concurrent_update':
                raise PlacementConflict(provider=next(iter(targets)))
            self._can_reshape = response.status_code not in _NO_RESHAPE
            return None
        return {
            uuid: target.generation + _RESHAPE_STEPS for uuid, target in targets.items()
        }

    def get_traits(self, uuid: str) -> ProviderTraits:
        """Return the traits of a provider."""
        return _traits(self._send(uuid, 'GET', 'traits'))

    def set_traits(
        self, uuid: str, generation: int, traits: Collection[str]
    ) -> ProviderTraits:
        """Replace all traits of a provider."""
        body = {'resource_provider_generation': generation, 'traits': sorted(traits)}
        return _traits(self._send(uuid, 'PUT', 'traits', body))

    def list_providers_with_traits(
        self, required: Collection[str], forbidden: Collection[str]
    ) -> frozenset[str]:
        """Return uuids of the providers with all required and no forbidden trait.

        The result is empty if a trait does not exist.
        """
        query = {'required': _trait_filter(required, forbidden)}
        return frozenset(item['uuid'] for item in self._find_providers(query))

    def list_candidates(
        self,
        amounts: Mapping[str, int],
        required: Collection[str],
        forbidden: Collection[str],
    ) -> Mapping[str, Mapping[str, int]]:
        """Return the providers that can serve one granular request group now.

        The result is empty if a resource class or trait does not exist.

        :param amounts: requested amounts by resource class
        :returns: free amounts by provider uuid and resource class
        """
        resources = ','.join(f'{name}:{amount}' for name, amount in amounts.items())
        query = {'resources1': resources}
        if required or forbidden:
            query['required1'] = _trait_filter(required, forbidden)
        path = f'/allocation_candidates?{urlencode(query)}'
        # A granular group is served by a single provider. Microversion 1.29, which adds
        # candidates of several providers of a tree, would therefore add no result.
        response = self._remote.send('GET', path, accept=(400,))
        if response.status_code == 400:
            return {}
        candidates = self._remote.read(response)
        summaries = candidates['provider_summaries']
        return {
            uuid: {
                name: summary['capacity'] - summary['used']
                for name, summary in summaries[uuid]['resources'].items()
            }
            for request in candidates['allocation_requests']
            for uuid in request['allocations']
        }

    def has_candidates(self, groups: Sequence[GroupRequirements]) -> bool:
        """Check whether a host can serve all groups of an instance now.

        The query is that of Nova for the accelerators of the instance. Other resources
        are not checked. A resource class or a trait that does not exist fits no host.
        """
        query = {'group_policy': 'none', 'limit': '1'}
        for number, group in enumerate(groups, 1):
            query[f'resources{number}'] = ','.join(
                f'{name}:{amount}' for name, amount in group.amounts
            )
            if group.required or group.forbidden:
                traits = _trait_filter(group.required, group.forbidden)
                query[f'required{number}'] = traits
        path = f'/allocation_candidates?{urlencode(query)}'
        remote = self._remote.with_microversion(_NESTED_MICROVERSION)
        response = remote.send('GET', path, accept=(400,))
        return response.status_code != 400 and bool(
            self._remote.read(response)['allocation_requests']
        )

    def get_usages(self, uuid: str) -> Mapping[str, int]:
        """Return the allocated amounts of a provider, by resource class."""
        usages: Mapping[str, int] = self._send(uuid, 'GET', 'usages')['usages']
        return usages

    # --- custom resource classes and traits ---

    def create_custom_names(
        self, classes: Iterable[str], traits: Iterable[str]
    ) -> None:
        """Create the custom resource classes and traits that are not in the cache.

        Sends one request per created name. Standard names are ignored.
        """
        paths = [
            f'/{kind}/{name}'
            for kind, names in (('resource_classes', classes), ('traits', traits))
            for name in sorted(names)
            if name.startswith('CUSTOM_')
        ]
        for path in paths:
            with self._lock:
                if path in self._existing_names:
                    continue
            self._remote.send('PUT', path)
            with self._lock:
                self._existing_names.add(path)

    def list_unused_traits(self) -> frozenset[str]:
        """Return the custom traits that no provider has."""
        query = urlencode({'name': 'startswith:CUSTOM_', 'associated': 'false'})
        return frozenset(
            self._remote.read(self._remote.send('GET', f'/traits?{query}'))['traits']
        )

    def delete_trait(self, name: str) -> bool:
        """Delete a custom trait. A trait that does not exist is no error.

        :returns: False if a provider has the trait
        """
        return self._delete_name(f'/traits/{quote(name)}')

    def list_custom_classes(self) -> frozenset[str]:
        """Return the custom resource classes."""
        body = self._remote.read(self._remote.send('GET', '/resource_classes'))
        names = (item['name'] for item in body['resource_classes'])
        return frozenset(name for name in names if name.startswith('CUSTOM_'))

    def delete_resource_class(self, name: str) -> bool:
        """Delete a custom resource class. A class that does not exist is no error.

        :returns: False if a provider has an inventory of the class
        """
        return self._delete_name(f'/resource_classes/{quote(name)}')

    def _delete_name(self, path: str) -> bool:
        """Delete a custom name; return False if it is in use."""
        response = self._remote.send('DELETE', path, accept=(404, 409))
        with self._lock:
            self._existing_names.discard(path)
        return response.status_code != 409

    def invalidate_names(self) -> None:
        """Empty the cache of names, after Placement has rejected one as unknown."""
        with self._lock:
            self._existing_names.clear()

    # --- consumers ---

    def find_consumer(self, uuid: str) -> Consumer | None:
        """Return the allocations of a consumer, or None if it has none."""
        body = self._remote.read(
            self._remote.send('GET', f'/allocations/{quote(uuid)}')
        )
        if not body['allocations']:
            return None
        return Consumer(
            uuid=uuid,
            project_id=body['project_id'],
            user_id=body['user_id'],
            generation=body['consumer_generation'],
            allocations={
                provider: allocation['resources']
                for provider, allocation in body['allocations'].items()
            },
        )

    def shrink_consumer(self, consumer: Consumer, provider: str) -> bool:
        """Delete the allocation of a consumer on one provider, and keep all others.

        :returns: False if the consumer has changed since it was read
        """
        remaining = {
            uuid: {'resources': dict(amounts)}
            for uuid, amounts in consumer.allocations.items()
            if uuid != provider
        }
        body = {
            'allocations': remaining,
            'project_id': consumer.project_id,
            'user_id': consumer.user_id,
            'consumer_generation': consumer.generation,
        }
        path = f'/allocations/{quote(consumer.uuid)}'
        response = self._remote.send('PUT', path, body, accept=(409,))
        return response.status_code != 409

    def list_consumers(self, provider: str) -> frozenset[str]:
        """Return uuids of the consumers of a provider, which need not exist."""
        return frozenset(self.list_allocations(provider))

    def list_allocations(self, provider: str) -> Mapping[str, Mapping[str, int]]:
        """Return amounts by resource class, by uuid of each consumer of a provider."""
        path = f'{_provider_path(provider)}/allocations'
        response = self._remote.send('GET', path, accept=(404,))
        if response.status_code == 404:
            return {}
        consumers = self._remote.read(response)['allocations']
        return {uuid: item['resources'] for uuid, item in consumers.items()}

    # Any: JSON.
    def _find_providers(self, query: Mapping[str, str]) -> list[Any]:
        """Return providers; empty if a trait of the query does not exist."""
        path = f'/resource_providers?{urlencode(query)}'
        response = self._remote.send('GET', path, accept=(400,))
        is_unknown = response.status_code == 400
        return [] if is_unknown else self._remote.read(response)['resource_providers']

    def _list_providers(self, query: Mapping[str, str]) -> tuple[TreeNode, ...]:
        path = f'/resource_providers?{urlencode(query)}'.rstrip('?')
        body = self._remote.read(self._remote.send('GET', path))
        return tuple(map(_node, body['resource_providers']))

    def _send(self, uuid: str, method: str, resource: str, body: object = None) -> Any:
        """Send a request about a provider and return the JSON of the response.

        :raises PlacementConflict: the provider or its generation does not exist
        :raises ProviderInUse: allocations prevent the change
        """
        path = f'{_provider_path(uuid)}/{resource}'
        response = self._remote.send(method, path, body, accept=(404, 409))
        if response.status_code == 404:
            raise PlacementConflict(provider=uuid)
        if response.status_code == 409:
            raise self._to_conflict(uuid, response)
        return self._remote.read(response)

    def _to_conflict(self, uuid: str, response: requests.Response) -> Exception:
        code = _error_code(response)
        if code in _IN_USE_CODES:
            return ProviderInUse(provider=uuid)
        if code == 'placement.concurrent_update':
            return PlacementConflict(provider=uuid)
        return self._remote.to_error(response)


def _error_code(response: requests.Response) -> str | None:
    """Return the error code, or None, e.g. if a proxy sent the response."""
    try:
        code = response.json()['errors'][0]['code']
    except (requests.JSONDecodeError, LookupError, TypeError):
        return None
    return str(code)


def _provider_path(uuid: str) -> str:
    return f'/resource_providers/{quote(uuid)}'


def _trait_filter(required: Collection[str], forbidden: Collection[str]) -> str:
    return ','.join([*sorted(required), *(f'!{name}' for name in sorted(forbidden))])


def _inventories_body(generation: int, inventories: Inventories) -> dict[str, object]:
    rows = {name: asdict(inventory) for name, inventory in inventories.items()}
    return {'resource_provider_generation': generation, 'inventories': rows}


# The functions below convert JSON in the format of MICROVERSION.


def _node(body: Any) -> TreeNode:
    return TreeNode(
        uuid=body['uuid'],
        name=body['name'],
        generation=body['generation'],
        parent_uuid=body['parent_provider_uuid'],
        root_uuid=body['root_provider_uuid'],
    )


def _inventories(body: Any) -> ProviderInventories:
    names = [field.name for field in fields(ProviderInventory)]
    return ProviderInventories(
        generation=body['resource_provider_generation'],
        inventories={
            resource_class: ProviderInventory(**{name: item[name] for name in names})
            for resource_class, item in body['inventories'].items()
        },
    )


def _traits(body: Any) -> ProviderTraits:
    generation = body['resource_provider_generation']
    return ProviderTraits(generation, frozenset(body['traits']))
