# SPDX-License-Identifier: Apache-2.0
"""Names in groups of device profiles that were renamed, and their present names.

Add a line to a table when a key, a resource class or a trait gets another name.
``cyborg-lite-dbsync migrate-profiles`` then changes the stored profiles. Until all
profiles and instances use the present name, both names are valid.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

_RESOURCES: Final = 'resources:'
_TRAIT: Final = 'trait:'

RENAMED_KEYS: Final[Mapping[str, str]] = {
    # The property of the images had this name first.
    'accel:function_uuid': 'accel:function_id'
}
"""Keys that only this service reads."""

RENAMED_CLASSES: Final[Mapping[str, str]] = {
    # Proposed for the first releases of OpenStack Cyborg, before os-resource-classes
    # had classes for accelerators.
    'CUSTOM_ACCELERATOR_FPGA': 'FPGA',
    'CUSTOM_ACCELERATOR_GPU': 'PGPU',
    'CUSTOM_ACCELERATOR_QAT': 'CUSTOM_QAT',
}
"""Resource classes."""

# Traits by pattern. OpenStack Cyborg had these until Victoria.
_RENAMED_TRAITS: Final = (
    (re.compile(r'CUSTOM_GPU_PRODUCT_ID_([0-9A-F]{4})'), r'CUSTOM_NVIDIA_\1'),
)
FORMER_TRAIT_PARTS: Final = ('CUSTOM_GPU_PRODUCT_ID_',)
"""Texts of which each renamed trait contains one."""

# Traits without a present name; superfluous beside a trait that matches the pattern.
_REMOVED_TRAITS: Final = {
    'CUSTOM_GPU_NVIDIA': re.compile(r'CUSTOM_GPU_PRODUCT_ID_[0-9A-F]{4}')
}


@dataclass(frozen=True, slots=True)
class GroupMigration:
    """A group with present names, and the difference."""

    group: Mapping[str, str]
    # Pairs of keys; the second is empty if the key is removed.
    changes: tuple[tuple[str, str], ...] = ()
    problem: str = ''  # why the group cannot be migrated


def migrate_group(group: Mapping[str, str]) -> GroupMigration:
    """Return a group with present names. A group with a problem does not change."""
    result: dict[str, str] = {}
    changes: list[tuple[str, str]] = []
    for key, value in group.items():
        name = rename_key(key)
        if key.removeprefix(_TRAIT) in _REMOVED_TRAITS:
            if not _has_product(group, key):
                return GroupMigration(group, problem=f'{key} has no present name')
            changes.append((key, ''))
            continue
        if name != key:
            changes.append((key, name))
        if name in result or (name != key and name in group):
            return GroupMigration(group, problem=f'{key} and {name} are both present')
        result[name] = value
    return GroupMigration(result, tuple(changes))


def rename_key(key: str) -> str:
    """Return the present name of a key."""
    if key.startswith(_RESOURCES):
        name = key.removeprefix(_RESOURCES)
        return f'{_RESOURCES}{RENAMED_CLASSES.get(name, name)}'
    if key.startswith(_TRAIT):
        return f'{_TRAIT}{rename_trait(key.removeprefix(_TRAIT))}'
    return RENAMED_KEYS.get(key, key)


def _has_product(group: Mapping[str, str], key: str) -> bool:
    """Check whether a removed trait is superfluous in its group."""
    pattern = _REMOVED_TRAITS[key.removeprefix(_TRAIT)]
    return any(
        pattern.fullmatch(name.removeprefix(_TRAIT)) and value == group[key]
        for name, value in group.items()
    )


def rename_trait(name: str) -> str:
    """Return the present name of a trait."""
    for pattern, replacement in _RENAMED_TRAITS:
        if pattern.fullmatch(name):
            return pattern.sub(replacement, name)
    return name


def list_renamed_traits(groups: Iterable[Mapping[str, str]]) -> frozenset[str]:
    """Return the traits in groups that have another name now."""
    names = (
        key.removeprefix(_TRAIT)
        for group in groups
        for key in group
        if key.startswith(_TRAIT)
    )
    return frozenset(name for name in names if rename_trait(name) != name)
