# SPDX-License-Identifier: Apache-2.0
"""Availability of units: the rule of counts and of single units is the same."""

from collections import Counter

import pytest

from cyborg_lite.model.capacity.availability import Withholding, settle, withhold
from cyborg_lite.model.capacity.explanations import ReasonCode
from cyborg_lite.model.hosts.topology import Availability, TopologyUnit

UNITS = [
    TopologyUnit(f'unit-{state}-{n}', 'PCI', state)
    for state, number in (
        (Availability.FREE, 3),
        (Availability.USED, 1),
        (Availability.DIRTY, 1),
    )
    for n in range(number)
]


@pytest.mark.parametrize(
    ('withholding', 'counts'),
    [
        (Withholding(), {'free': 3, 'used': 1, 'dirty': 1}),
        (Withholding(reserved=2), {'free': 1, 'used': 1, 'dirty': 1, 'reserved': 2}),
        (
            Withholding(consumers=('a',), reserved=9),
            {'used': 1, 'dirty': 1, 'allocated': 1, 'reserved': 2},
        ),
        (
            Withholding(ReasonCode.MAINTENANCE, 'A fan.', ('a',)),
            {'used': 1, 'dirty': 1, 'reserved': 3},
        ),
        (
            Withholding(ReasonCode.HOST_SILENT, 'Down.', reserved=1),
            {'used': 1, 'dirty': 1, 'host-down': 3},
        ),
        (Withholding(ReasonCode.UNHEALTHY, 'Failed.', ('a',)), {'broken': 5}),
    ],
)
def test_withheld_units_and_their_counts_agree(
    withholding: Withholding, counts: dict[str, int]
) -> None:
    own = Counter(unit.availability for unit in UNITS)
    assert settle(own, withholding) == counts
    units = withhold(UNITS, withholding)
    assert Counter(unit.availability for unit in units) == counts
    assert [unit.name for unit in units] == [unit.name for unit in UNITS]


def test_withheld_unit_names_its_consumer() -> None:
    units = withhold(UNITS, Withholding(consumers=('a', 'b'), reserved=1))
    reasons = [unit.reason for unit in units[:3]]
    assert reasons == [
        'The driver reserves it.',
        'Consumer b has allocated it without an ARQ.',
        'Consumer a has allocated it without an ARQ.',
    ]
