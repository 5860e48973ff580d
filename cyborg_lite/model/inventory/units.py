# SPDX-License-Identifier: Apache-2.0
"""Units of integers in selectors, and their conversion.

Prefixes follow IEC 80000-13: ``MiB`` is 2**20 bytes, ``MB`` is 10**6 bytes.
"""

from collections.abc import Mapping
from typing import Final

_DIMENSIONS: Final[tuple[Mapping[str, int], ...]] = (
    {
        'B': 1,
        'kB': 10**3,
        'MB': 10**6,
        'GB': 10**9,
        'TB': 10**12,
        'KiB': 2**10,
        'MiB': 2**20,
        'GiB': 2**30,
        'TiB': 2**40,
    },
    {'Hz': 1, 'kHz': 10**3, 'MHz': 10**6, 'GHz': 10**9},
    {'mW': 1, 'W': 10**3, 'kW': 10**6},
    {'T/s': 1, 'kT/s': 10**3, 'MT/s': 10**6, 'GT/s': 10**9},
    {'bit/s': 1, 'kbit/s': 10**3, 'Mbit/s': 10**6, 'Gbit/s': 10**9},
)


def list_units(unit: str) -> tuple[str, ...]:
    """Return the units that can be converted to a unit, the unit itself included."""
    for dimension in _DIMENSIONS:
        if unit in dimension:
            return tuple(dimension)
    return (unit,) if unit else ()


def convert_unit(source: str, target: str) -> tuple[int, int] | None:
    """Return factors by which numbers in two units become comparable.

    :returns: the factor for a number in ``source``, and the one for a number in
        ``target``; None: the units measure different things
    """
    if source == target:
        return 1, 1
    for dimension in _DIMENSIONS:
        if source in dimension and target in dimension:
            return dimension[source], dimension[target]
    return None
