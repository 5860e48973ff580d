# SPDX-License-Identifier: Apache-2.0
"""Units of deployables, counted by availability."""

from collections.abc import Mapping
from dataclasses import dataclass

from cyborg_lite.model.hosts.topology import Availability


@dataclass(frozen=True, slots=True)
class DeployableUnits:
    """The units of one deployable."""

    resource_class: str
    traits: tuple[str, ...]
    counts: Mapping[Availability, int]
    reserved: int = 0  # units that the driver reserves without naming them

    def count(self, availability: Availability) -> int:
        """Return the number of units.

        The driver does not name the units that it reserves: as many of the free units
        count as reserved.
        """
        number = self.counts.get(availability, 0)
        withheld = min(self.reserved, self.counts.get(Availability.FREE, 0))
        match availability:
            case Availability.FREE:
                return number - withheld
            case Availability.RESERVED:
                return number + withheld
        return number
