# SPDX-License-Identifier: Apache-2.0
"""Tests of the numbers of units of a deployable."""

from cyborg_lite.model.capacity.availability import DeployableUnits
from cyborg_lite.model.hosts.topology import Availability


def test_count_moves_unnamed_reservations_from_free() -> None:
    counts = {Availability.FREE: 2, Availability.USED: 1}
    for reserved, free in ((0, 2), (1, 1), (9, 0)):
        units = DeployableUnits('PGPU', (), counts, reserved)
        numbers = [units.count(state) for state in Availability]
        assert numbers == [free, 1, 2 - free, 0]
        assert sum(numbers) == 3
