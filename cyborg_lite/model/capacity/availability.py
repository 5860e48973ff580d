# SPDX-License-Identifier: Apache-2.0
"""The availability of the units of a deployable: one rule for all that counts them.

A unit has a state of its own, and the deployable may withhold free units: the host is
down, the driver reserves some without naming them, or other consumers have allocated
some in Placement.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cyborg_lite.model.capacity.explanations import ReasonCode
from cyborg_lite.model.hosts.topology import Availability, TopologyUnit

_CLOSED_STATES: Final = {
    ReasonCode.UNHEALTHY: Availability.BROKEN,
    ReasonCode.WITHHELD: Availability.RESERVED,
    ReasonCode.MAINTENANCE: Availability.RESERVED,
    ReasonCode.MANAGED_ELSEWHERE: Availability.RESERVED,
    ReasonCode.HOST_SILENT: Availability.HOST_DOWN,
}


@dataclass(frozen=True, slots=True)
class Withholding:
    """Reasons of a deployable for which its free units are not available."""

    closed: ReasonCode | None = None  # None: open
    closed_text: str = ''
    consumers: Sequence[str] = ()  # without an ARQ, one entry per allocated unit
    reserved: int = 0  # units that the driver reserves without naming them
    # Units that fit on an elastic card beside those in use. None: it is not elastic.
    fitting: int | None = None
    group_size: int = 1  # units that are only given together

    def list_states(self, free: int) -> list[tuple[Availability, str]]:
        """Return state and reason of the units that are withheld.

        :param free: number of units that are free by their own state
        """
        if self.closed is not None:
            return [(_CLOSED_STATES[self.closed], self.closed_text)] * free
        states = [
            (
                Availability.ALLOCATED,
                f'Consumer {uuid} has allocated it without an ARQ.',
            )
            for uuid in self.consumers
        ]
        states += [(Availability.RESERVED, 'The driver reserves it.')] * self.reserved
        room = self.limit(free - len(states))
        text = 'It does not fit beside the units in use of its card.'
        if self.group_size > 1:
            text = 'Another unit of its group is not available.'
        states += [(Availability.RESERVED, text)] * (free - len(states) - room)
        return states[:free]

    def limit(self, free: int) -> int:
        """Return how many of the free units can be allocated together.

        Consumers without an ARQ occupy places that are not known.
        """
        if self.fitting is not None:
            free = min(free, self.fitting - len(self.consumers))
        return max(0, free - free % self.group_size)

    @property
    def is_broken(self) -> bool:
        """True: no unit works, whoever uses it."""
        return self.closed is ReasonCode.UNHEALTHY


def withhold(
    units: Sequence[TopologyUnit], withholding: Withholding
) -> tuple[TopologyUnit, ...]:
    """Return the units of a deployable with the availability that they have in it.

    Nothing says which units a driver reserves or another consumer has allocated: they
    are the last free ones.
    """
    if withholding.is_broken:
        text = withholding.closed_text
        return tuple(
            replace(unit, availability=Availability.BROKEN, reason=unit.reason or text)
            for unit in units
        )
    free = [unit for unit in units if unit.availability is Availability.FREE]
    states = withholding.list_states(len(free))
    changes = dict(zip((unit.name for unit in reversed(free)), states, strict=False))
    return tuple(
        replace(unit, availability=changes[unit.name][0], reason=changes[unit.name][1])
        if unit.name in changes
        else unit
        for unit in units
    )


def settle(
    counts: Mapping[Availability, int], withholding: Withholding
) -> Mapping[Availability, int]:
    """Return the number of units by availability.

    :param counts: by the states that the units have of their own
    """
    if withholding.is_broken:
        return {Availability.BROKEN: sum(counts.values())}
    numbers = Counter(counts)
    states = withholding.list_states(numbers[Availability.FREE])
    numbers[Availability.FREE] -= len(states)
    return numbers + Counter(state for state, _ in states)
