# SPDX-License-Identifier: Apache-2.0
"""What an agent says is kept only if it can be: a database refuses more than Python."""

import pytest

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.message_rules import check_vitals
from cyborg_lite.model.services import Vitals
from cyborg_lite.model.usage import Usage

HOST, ADDRESS = 'compute-1', '0000:01:00.0'


def test_figures_that_are_plausible_are_taken() -> None:
    known = Usage(
        Health.DEGRADED,
        'hot',
        busy_percent=0.0,
        memory_used=2**40,
        memory_total=2**41,
        temperature=-10.0,
        counters={'fatal': 2},
    )
    check_vitals(HOST, Vitals('boot', {ADDRESS: known, '0000:02:00.0': Usage()}))


@pytest.mark.parametrize(
    'usage',
    [
        Usage(reason='x' * 4097),
        Usage(reason='\0'),
        Usage(busy_percent=float('nan')),
        Usage(power=float('-inf')),
        Usage(memory_used=2**63),
        Usage(counters={'fatal': -1}),
        Usage(counters={'x' * 65: 1}),
        Usage(counters={f'c{number}': 1 for number in range(33)}),
    ],
)
def test_a_figure_that_cannot_be_kept_is_refused(usage: Usage) -> None:
    with pytest.raises(InvalidInput):
        check_vitals(HOST, Vitals('boot', {ADDRESS: usage}))


@pytest.mark.parametrize(
    ('host', 'vitals'),
    [
        ('', Vitals()),
        ('x' * 256, Vitals()),
        (HOST, Vitals('x' * 65)),
        (HOST, Vitals('boot', {'x' * 65: Usage()})),
        (HOST, Vitals('boot', {f'card{number}': Usage() for number in range(1025)})),
    ],
)
def test_names_and_numbers_of_devices_have_bounds(host: str, vitals: Vitals) -> None:
    with pytest.raises(InvalidInput):
        check_vitals(host, vitals)
