# SPDX-License-Identifier: Apache-2.0
"""What we ask of Placement; a method is one request save where it says otherwise."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import requests
from oslo_config import cfg

from cyborg_lite.clients import session
from cyborg_lite.exceptions import (
    ConfigurationError,
    PlacementConflict,
    ProviderExists,
    ProviderInUse,
)
from cyborg_lite.model.providers import Inventories, Inventory, TreeNode

MICROVERSION: Final = '1.28'
"""Trees since 1.14, error codes since 1.23, all of a provider reserved since 1.26, and
generations of consumers since 1.28: a Placement of Rocky or later."""

_MOVING: Final = '1.37'
"""A provider may be given another parent: a Placement of Xena or later."""

_IN_USE: Final = frozenset(
    {
        'placement.inventory.inuse',
        'placement.resource_provider.inuse',
        'placement.resource_provider.cannot_delete_parent',
    }
)


@dataclass(frozen=True, slots=True)
class Stocked:
    """The inventories of a provider, and its generation with them."""

    generation: int
    inventories: Inventories


@dataclass(frozen=True, slots=True)
class Marked:
    """The traits of a provider, and its generation with them."""

    generation: int
    traits: frozenset[str]


@dataclass(frozen=True, slots=True)
class Consumer:
    """A server, or whatever else things are allocated to."""

    uuid: str
    project_id: str
    user_id: str
    generation: int
    allocations: Mapping[str, Mapping[str, int]]  # by provider, by resource class

    @property
    def providers(self) -> frozenset[str]:
        return frozenset(self.allocations)


class Placement:
    """Every method raises ServiceUnavailable when Placement, or what is before it,
    does not answer, and RemoteError when it refuses for a reason we do not foresee."""

    def __init__(self, remote: session.Remote) -> None:
        self._remote = remote
        # Traits and classes that are known to exist; nobody deletes them in earnest.
        self._known: set[str] = set()
        self._lock = threading.Lock()

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts) -> Self:
        """By the section ``[placement]``.

        :raises ConfigurationError: the section is empty
        """
        remote = session.connect(conf, 'placement', 'Placement', MICROVERSION)
        if remote is None:
            raise ConfigurationError(
                reason='Section [placement] gives neither auth_type nor '
                'endpoint_override.'
            )
        return cls(remote)

    def watch(self, watcher: Callable[[str, int | None], None]) -> None:
        """Tell of each request its method and its status, None for no answer."""
        self._remote.watcher = watcher

    # --- providers ---

    def provider(self, uuid: str) -> TreeNode | None:
        answer = self._remote.send('GET', _of(uuid), accept=(404,))
        return None if answer.status_code == 404 else _node(answer.json())

    def provider_named(self, name: str) -> TreeNode | None:
        found = self._providers({'name': name})
        return found[0] if found else None

    def tree(self, uuid: str, trait: str | None = None) -> tuple[TreeNode, ...]:
        """All providers of the tree that ``uuid`` is in; or those with a trait."""
        return self._providers(
            {'in_tree': uuid} if trait is None else {'in_tree': uuid, 'required': trait}
        )

    def hosts_with(self, trait: str) -> frozenset[str]:
        """Names of the roots in whose trees any provider has a trait; two calls."""
        roots = {node.root_uuid for node in self._providers({'required': trait})}
        if not roots:
            return frozenset()
        return frozenset(
            node.name for node in self._providers({}) if node.uuid in roots
        )

    def create_provider(
        self, uuid: str, name: str, parent_uuid: str | None
    ) -> TreeNode:
        """:raises ProviderExists: its name or uuid is taken"""
        body = {'uuid': uuid, 'name': name}
        if parent_uuid is not None:
            body['parent_provider_uuid'] = parent_uuid
        answer = self._remote.send('POST', '/resource_providers', body, accept=(409,))
        if answer.status_code == 409:
            raise ProviderExists(name=name)
        return _node(answer.json())

    def rename_provider(self, node: TreeNode, name: str) -> TreeNode:
        """:raises ProviderExists: the name is taken"""
        return self._place(self._remote, node.uuid, name, node.parent_uuid)

    def move_provider(
        self, node: TreeNode, name: str, parent_uuid: str | None
    ) -> TreeNode:
        """Give it another parent, and a name, with all that is below it.

        :raises ProviderExists: the name is taken
        :raises RemoteError: this Placement cannot, being too old: status 406
        """
        return self._place(self._remote.at(_MOVING), node.uuid, name, parent_uuid)

    def _place(
        self, remote: session.Remote, uuid: str, name: str, parent_uuid: str | None
    ) -> TreeNode:
        body = {'name': name, 'parent_provider_uuid': parent_uuid}
        answer = remote.send('PUT', _of(uuid), body, accept=(404, 409))
        if answer.status_code == 404:
            raise PlacementConflict(provider=uuid)
        if answer.status_code == 409:
            raise ProviderExists(name=name)
        return _node(answer.json())

    def delete_provider(self, uuid: str) -> None:
        """One that is not there any more will do.

        :raises ProviderInUse: it has allocations, or children
        """
        answer = self._remote.send('DELETE', _of(uuid), accept=(404, 409))
        if answer.status_code == 409:
            raise self._conflict(uuid, answer)

    # --- what a provider has ---

    def inventories(self, uuid: str) -> Stocked:
        """:raises PlacementConflict: there is no such provider any more"""
        return _stocked(self._ask(uuid, 'GET', 'inventories'))

    def set_inventories(
        self, uuid: str, generation: int, inventories: Inventories
    ) -> Stocked:
        """Replace all of them.

        :raises PlacementConflict: the provider is not of that generation any more
        :raises ProviderInUse: what is allocated would be without an inventory
        """
        rows = {name: asdict(one) for name, one in inventories.items()}
        body = {'resource_provider_generation': generation, 'inventories': rows}
        return _stocked(self._ask(uuid, 'PUT', 'inventories', body))

    def traits(self, uuid: str) -> Marked:
        """:raises PlacementConflict: there is no such provider any more"""
        return _marked(self._ask(uuid, 'GET', 'traits'))

    def set_traits(self, uuid: str, generation: int, traits: Collection[str]) -> Marked:
        """Replace all of them.

        :raises PlacementConflict: the provider is not of that generation any more
        """
        body = {'resource_provider_generation': generation, 'traits': sorted(traits)}
        return _marked(self._ask(uuid, 'PUT', 'traits', body))

    def marked(
        self, required: Collection[str], forbidden: Collection[str]
    ) -> frozenset[str]:
        """The providers that have the traits and lack those, whatever else they have.

        None, if Placement does not know one of the traits.
        """
        wanted = urlencode({'required': _traits(required, forbidden)})
        path = f'/resource_providers?{wanted}'
        answer = self._remote.send('GET', path, accept=(400,))
        if answer.status_code == 400:
            return frozenset()
        return frozenset(one['uuid'] for one in answer.json()['resource_providers'])

    def candidates(
        self,
        amounts: Mapping[str, int],
        required: Collection[str],
        forbidden: Collection[str],
    ) -> Mapping[str, Mapping[str, int]]:
        """The providers that could serve one granular request group now, alone.

        None, if Placement does not know one of the classes or traits.

        :param amounts: by resource class
        :returns: free units by class, by provider
        """
        asked = ','.join(f'{name}:{units}' for name, units in amounts.items())
        query = {'resources1': asked}
        if required or forbidden:
            query['required1'] = _traits(required, forbidden)
        path = f'/allocation_candidates?{urlencode(query)}'
        # One provider is enough for each candidate, so that microversion 1.29, which
        # combines those of a tree and tells of all of it, would say nothing more.
        answer = self._remote.send('GET', path, accept=(400,))
        if answer.status_code == 400:
            return {}
        said = answer.json()
        summaries = said['provider_summaries']
        return {
            uuid: _free(summaries[uuid]['resources'])
            for one in said['allocation_requests']
            for uuid in one['allocations']
        }

    def usages(self, uuid: str) -> Mapping[str, int]:
        """Units in use, by resource class.

        :raises PlacementConflict: there is no such provider any more
        """
        used: Mapping[str, int] = self._ask(uuid, 'GET', 'usages')['usages']
        return used

    # --- what must exist before a provider can have it ---

    def ensure(self, classes: Iterable[str], traits: Iterable[str]) -> None:
        """Make the custom ones among these; a request for each that is new to us."""
        paths = [
            f'/{kind}/{name}'
            for kind, names in (('resource_classes', classes), ('traits', traits))
            for name in sorted(names)
            if name.startswith('CUSTOM_')
        ]
        for path in paths:
            with self._lock:
                if path in self._known:
                    continue
            self._remote.send('PUT', path)
            with self._lock:
                self._known.add(path)

    def forget(self) -> None:
        """Doubt that any class or trait exists: Placement has refused one."""
        with self._lock:
            self._known.clear()

    # --- consumers ---

    def consumer(self, uuid: str) -> Consumer | None:
        """What is allocated to a server; None: nothing."""
        said = self._remote.send('GET', f'/allocations/{quote(uuid)}').json()
        if not said['allocations']:
            return None
        return Consumer(
            uuid=uuid,
            project_id=said['project_id'],
            user_id=said['user_id'],
            generation=said['consumer_generation'],
            allocations={
                provider: one['resources']
                for provider, one in said['allocations'].items()
            },
        )

    def consumers_of(self, provider: str) -> frozenset[str]:
        """The servers, and whatever else, that a provider is allocated to; none, if
        there is no such provider."""
        path = f'{_of(provider)}/allocations'
        answer = self._remote.send('GET', path, accept=(404,))
        found = {} if answer.status_code == 404 else answer.json()['allocations']
        return frozenset(found)

    def _providers(self, query: Mapping[str, str]) -> tuple[TreeNode, ...]:
        path = f'/resource_providers?{urlencode(query)}'.rstrip('?')
        said = self._remote.send('GET', path).json()
        return tuple(map(_node, said['resource_providers']))

    def _ask(self, uuid: str, method: str, part: str, body: object = None) -> Any:
        """The answer's JSON, whose form each caller knows."""
        path = f'{_of(uuid)}/{part}'
        answer = self._remote.send(method, path, body, accept=(404, 409))
        if answer.status_code == 404:
            raise PlacementConflict(provider=uuid)
        if answer.status_code == 409:
            raise self._conflict(uuid, answer)
        return answer.json()

    def _conflict(self, uuid: str, answer: requests.Response) -> Exception:
        code = _error_code(answer)
        if code in _IN_USE:
            return ProviderInUse(provider=uuid)
        if code == 'placement.concurrent_update':
            return PlacementConflict(provider=uuid)
        return self._remote.refusal(answer)


def _error_code(answer: requests.Response) -> str | None:
    """None: it gives none, as what is before Placement may not."""
    try:
        code = answer.json()['errors'][0]['code']
    except (requests.JSONDecodeError, LookupError, TypeError):
        return None
    return str(code)


def _of(uuid: str) -> str:
    return f'/resource_providers/{quote(uuid)}'


def _traits(required: Collection[str], forbidden: Collection[str]) -> str:
    return ','.join([*sorted(required), *(f'!{name}' for name in sorted(forbidden))])


# What Placement sends is JSON in the form of its microversion.


def _free(said: Any) -> dict[str, int]:
    return {name: one['capacity'] - one['used'] for name, one in said.items()}


def _node(said: Any) -> TreeNode:
    return TreeNode(
        uuid=said['uuid'],
        name=said['name'],
        generation=said['generation'],
        parent_uuid=said['parent_provider_uuid'],
        root_uuid=said['root_provider_uuid'],
    )


def _stocked(said: Any) -> Stocked:
    return Stocked(
        generation=said['resource_provider_generation'],
        inventories={
            name: Inventory(
                total=one['total'],
                reserved=one['reserved'],
                min_unit=one['min_unit'],
                max_unit=one['max_unit'],
                step_size=one['step_size'],
                allocation_ratio=one['allocation_ratio'],
            )
            for name, one in said['inventories'].items()
        },
    )


def _marked(said: Any) -> Marked:
    return Marked(said['resource_provider_generation'], frozenset(said['traits']))
