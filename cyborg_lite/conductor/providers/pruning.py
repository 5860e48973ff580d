# SPDX-License-Identifier: Apache-2.0
"""Deletion of custom traits and resource classes of this service that nobody uses."""

from collections.abc import Callable, Collection, Iterator

from cyborg_lite.clients.placement import Placement
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.db.providers import providers
from cyborg_lite.model.providers.changes import is_generated_class, is_generated_trait
from cyborg_lite.model.queries import Query
from cyborg_lite.model.traits import EMPTIED


def prune_names(
    database: Database, placement: Placement, published: Collection[str]
) -> Iterator[str]:
    """Delete unused names, and yield a text for each of them.

    :param published: traits and classes that this service had set on providers before
        the providers were deleted
    :raises CyborgError: the database or Placement does not answer
    """
    used = database.read(providers.list_desired_names) | {
        key.partition(':')[2]
        for profile in database.read(profiles.list_profiles, Query())
        for group in profile.groups
        for key in group
    }
    traits = [
        name
        for name in sorted(placement.list_unused_traits() - used)
        if name in published or name == EMPTIED or is_generated_trait(name)
    ]
    yield from _delete('custom trait', traits, placement.delete_trait)
    classes = [
        name
        for name in sorted(placement.list_custom_classes() - used)
        if name in published or is_generated_class(name)
    ]
    yield from _delete('resource class', classes, placement.delete_resource_class)


def _delete(
    kind: str, names: Collection[str], delete: Callable[[str], bool]
) -> Iterator[str]:
    for name in names:
        if delete(name):
            yield f'{kind} {name}: deleted, unused'
