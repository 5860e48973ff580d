# SPDX-License-Identifier: Apache-2.0
"""How a resource class and traits are shown among the attributes of a deployable.

Clients find them there and nowhere else: the class under ``rc``, traits numbered.
"""

import re
from typing import Final

from cyborg_lite.model.inventory import Deployable

_CLASS: Final = 'rc'
_OTHER: Final = 2  # after the class and the traits
# Cyborg's drivers disagree on the spelling, and on where to begin to count.
_TRAIT: Final = re.compile(r'traits?(\d{1,9})')


def shown_attributes(deployable: Deployable) -> dict[str, str]:
    """The class, the traits, then whatever else the driver says, by key.

    A driver that spells class and traits itself is left its spelling.
    """
    said = dict(deployable.attributes)
    if _CLASS not in said and deployable.resource_class is not None:
        said = {key: value for key, value in said.items() if rank(key)[0] == _OTHER}
        said[_CLASS] = deployable.resource_class
        for number, trait in enumerate(deployable.traits, start=1):
            said[f'traits{number}'] = trait
    return {key: said[key] for key in sorted(said, key=rank)}


def rank(key: str) -> tuple[int, int, str]:
    """The place of an attribute among those of its deployable, to sort by."""
    if key == _CLASS:
        return 0, 0, key
    if numbered := _TRAIT.fullmatch(key):
        return 1, int(numbered[1]), key
    return _OTHER, 0, key
