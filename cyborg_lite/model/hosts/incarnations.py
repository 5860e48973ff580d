# SPDX-License-Identifier: Apache-2.0
"""Marks by which a database that has lost commits is told from a living one.

Daemons remember a mark of the database. A restored backup, or a replica that lagged
behind, has a lower mark, or another ARQ at a step that a daemon remembers. A restored
database gets a new incarnation when an operator has compared it with the hosts.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar, Final, Self


@dataclass(frozen=True, slots=True)
class DatabaseMark:
    """The latest changes of a database. All numbers only grow in one incarnation."""

    OMITS_DEFAULTS: ClassVar[bool] = True  # in messages

    incarnation: int = 0
    step: int = 0  # id of the latest step in the history of all ARQs; 0: none
    arq_uuid: str = ''  # the ARQ of that step
    period: int = 0  # id of the latest usage period; 0: none

    def merge(self, mark: Self) -> Self:
        """Return the mark of a daemon that has seen both marks, in any order."""
        if self.incarnation != mark.incarnation:
            return self if self.incarnation > mark.incarnation else mark
        later = self if self.step > mark.step else mark
        return replace(later, period=max(self.period, mark.period))


NO_MARK: Final = DatabaseMark()
"""The mark of an empty database, and the memory of a daemon that has seen none."""


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The time in which nothing is done on the word of a restored database."""

    incarnation: int  # that begins when the quarantine ends
    since: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """The mark of a database, compared with one that a daemon remembers."""

    mark: DatabaseMark
    quarantine: Quarantine | None  # None: the database is trusted
    # The ARQ of the remembered step. None: the step is lost, or was purged.
    arq_of_step: str | None

    def has_lost(self, remembered: DatabaseMark) -> bool:
        """Return whether the database lacks a commit that a daemon remembers.

        A step that is not the latest one, and that is missing, was purged.

        :param remembered: for which the state was read
        """
        if remembered.incarnation != self.mark.incarnation:
            return remembered.incarnation > self.mark.incarnation
        return (
            remembered.step > self.mark.step
            or remembered.period > self.mark.period
            or self.arq_of_step not in (None, remembered.arq_uuid)
        )
