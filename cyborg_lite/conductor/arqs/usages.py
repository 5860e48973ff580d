# SPDX-License-Identifier: Apache-2.0
"""Use of units by projects."""

from cyborg_lite.db.arqs import usages
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.arqs.usages import UsageQuery, UsageReport
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor


class UsageService:
    """Sums the use of units. The API has checked which projects the caller may see."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @serves(Conductor.sum_usages)
    def sum(self, query: UsageQuery) -> UsageReport:
        """Return the use of units by project, resource class and device profile."""
        return self._database.read(usages.sum_usages, query)
