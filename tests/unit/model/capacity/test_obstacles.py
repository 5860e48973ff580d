# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of the reasons why a provider does not serve a group."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cyborg_lite.model.capacity import obstacles
from cyborg_lite.model.capacity.explanations import (
    GroupCandidates,
    ProviderCapacity,
    ReasonCode,
)
from cyborg_lite.model.devices.cleaning import CleanState, UncleanUnit
from cyborg_lite.model.profiles.device_profiles import Group

NOW = datetime(2026, 11, 27, tzinfo=UTC)
# The provider lacks every requirement and is closed.
WORST = ProviderCapacity(
    rp_uuid='a',
    name='a',
    hostname='h',
    resource_class='PGPU',
    traits=frozenset(),
    total=1,
    free=0,
    free_handles=0,
    closed=ReasonCode.HOST_SILENT,
    closed_text='Silent.',
)
CANDIDATES = GroupCandidates(
    Group.parse({'resources:PGPU': '2', 'trait:CUSTOM_A': 'required'}).requirements
)


def test_explain_provider_lists_permanent_reasons_first() -> None:
    codes, provider = [], WORST
    improvements = [
        {'traits': frozenset({'CUSTOM_A'})},
        {'total': 2},
        {'closed': None},
        {'free': 2, 'free_handles': 2},
    ]
    for improvement in ({}, *improvements):
        provider = replace(provider, **improvement)  # type: ignore[arg-type]  # fields
        codes.append(obstacles.explain_provider(0, CANDIDATES, provider).code)
    assert codes == [
        ReasonCode.MISSING_TRAIT,
        ReasonCode.TOO_FEW_UNITS,
        ReasonCode.HOST_SILENT,
        ReasonCode.NO_FREE_UNIT,
        ReasonCode.NOT_OFFERED,
    ]
    candidates = replace(CANDIDATES, offers={'a': {'PGPU': 2}})
    assert obstacles.can_serve_now(candidates, provider)
    assert obstacles.can_serve_when_free(candidates, provider)


@pytest.mark.parametrize(
    ('state', 'progress', 'reason', 'text'),
    [
        (CleanState.DIRTY, '', '', 'Unit u0 waits for its clean.'),
        (CleanState.DIRTY, '', 'Busy.', 'Unit u0 waits for its clean: Busy.'),
        (
            CleanState.DIRTY,
            '1/2 sanitize',
            '',
            'Unit u0 is being cleaned, at step 1/2 sanitize.',
        ),
        (
            CleanState.FAILED,
            '',
            'medium error',
            'Unit u0 is clean_failed and waits for an operator: medium error.',
        ),
        (CleanState.USED, '', '', 'Unit u0 was for one use and waits for an operator.'),
    ],
)
def test_explain_provider_names_unclean_unit(
    state: CleanState, progress: str, reason: str, text: str
) -> None:
    unit = UncleanUnit('h', 'd', 'u0', state, progress, reason, NOW)
    assert explain_text((unit,)) == f'0 of 2 units are free, 2 are requested. {text}'


def test_explain_provider_names_three_unclean_units() -> None:
    units = tuple(
        UncleanUnit('h', 'd', f'u{number}', CleanState.DIRTY, '', '', NOW)
        for number in range(5)
    )
    text = explain_text(units)
    assert 'u2' in text
    assert 'u3' not in text
    assert text.endswith('Further units that are not clean: 2.')


def explain_text(unclean: tuple[UncleanUnit, ...]) -> str:
    """Return the reason of a full provider with some units that are not clean."""
    traits = frozenset({'CUSTOM_A'})
    full = replace(WORST, traits=traits, total=2, closed=None, unclean=unclean)
    return obstacles.explain_provider(0, CANDIDATES, full).text
