# SPDX-License-Identifier: Apache-2.0
"""Makes Placement agree with the rows of a host."""

from typing import Final

from cyborg_lite.conductor.job_attempts import Handler
from cyborg_lite.conductor.kinds.workplace import Workplace
from cyborg_lite.conductor.placement_sync import PlacementSyncHandler
from cyborg_lite.model.jobs import Kind

KIND: Final = Kind.PLACEMENT_SYNC


def handler(workplace: Workplace) -> Handler:
    return PlacementSyncHandler(workplace.database, workplace.sync)
