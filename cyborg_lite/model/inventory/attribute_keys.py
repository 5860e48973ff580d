# SPDX-License-Identifier: Apache-2.0
"""Attributes of a deployable that show its resource class and traits.

Clients find the resource class under ``rc`` and the traits under numbered keys.
"""

import re
from typing import Final

from cyborg_lite.model.inventory.host_report import Deployable

GROUP_SIZE: Final = 'group_size'
"""Number of units that are only given together, reported by the driver."""

PLACES: Final = 'places'
"""Places of the units of an elastic card, reported by the driver; see carving.py."""

_CLASS_KEY: Final = 'rc'
_OTHER_RANK: Final = 2  # after the resource class and the traits
# Drivers of OpenStack Cyborg differ in the spelling and in the first number.
_TRAIT_KEY: Final = re.compile(r'traits?(\d{1,9})')


def build_attributes(deployable: Deployable) -> dict[str, str]:
    """Return the resource class, the traits and the attributes of the driver, sorted.

    If the driver itself sets ``rc``, its keys for the traits stay as they are.
    """
    attributes = dict(deployable.attributes)
    if _CLASS_KEY not in attributes and deployable.resource_class is not None:
        attributes = {
            key: value
            for key, value in attributes.items()
            if attribute_sort_key(key)[0] == _OTHER_RANK
        }
        attributes[_CLASS_KEY] = deployable.resource_class
        for number, trait in enumerate(deployable.traits, start=1):
            attributes[f'traits{number}'] = trait
    return {key: attributes[key] for key in sorted(attributes, key=attribute_sort_key)}


def attribute_sort_key(key: str) -> tuple[int, int, str]:
    """Return the sort key of an attribute among the attributes of its deployable."""
    if key == _CLASS_KEY:
        return 0, 0, key
    if match := _TRAIT_KEY.fullmatch(key):
        return 1, int(match[1]), key
    return _OTHER_RANK, 0, key
