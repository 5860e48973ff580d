# SPDX-License-Identifier: Apache-2.0
"""The first thing that keeps a provider from a group, before all that follows it."""

from dataclasses import replace

import pytest

from cyborg_lite.model import obstacles
from cyborg_lite.model.explanations import Asked, Demand, Supply, Why

# It has nothing that is wanted, and is closed besides.
WORST = Supply(
    rp_uuid='a',
    name='a',
    hostname='h',
    resource_class='PGPU',
    traits=frozenset(),
    total=1,
    free=0,
    free_handles=0,
    closed=Why.HOST_SILENT,
    closed_text='Silent.',
)
ASKED = Asked(Demand.of({'resources:PGPU': '2', 'trait:CUSTOM_A': 'required'}))


def test_what_would_never_do_is_said_before_what_passes() -> None:
    met, provider = [], WORST
    better = [
        {'traits': frozenset({'CUSTOM_A'})},
        {'total': 2},
        {'closed': None},
        {'free': 2, 'free_handles': 2},
    ]
    for mended in ({}, *better):
        provider = replace(provider, **mended)  # type: ignore[arg-type]  # fields
        met.append(obstacles.of_provider(0, ASKED, provider).why)
    assert met == [
        Why.MISSING_TRAIT,
        Why.TOO_FEW_UNITS,
        Why.HOST_SILENT,
        Why.NO_FREE_UNIT,
        Why.NOT_OFFERED,
    ]
    offered = replace(ASKED, offers={'a': {'PGPU': 2}})
    assert obstacles.serves(offered, provider)
    assert obstacles.is_right(offered, provider)


@pytest.mark.parametrize(
    'fields', [{'closed': Why.MAINTENANCE}, {'free_handles': 1}, {'rp_uuid': 'b'}]
)
def test_what_placement_offers_may_still_be_refused_by_our_books(
    fields: dict[str, object],
) -> None:
    good = replace(WORST, closed=None, free=2, free_handles=2)
    offered = replace(ASKED, offers={'a': {'PGPU': 2}})
    assert obstacles.serves(offered, good)
    assert not obstacles.serves(offered, replace(good, **fields))  # type: ignore[arg-type]  # fields
