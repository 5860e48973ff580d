# SPDX-License-Identifier: Apache-2.0
"""Tests of the order of the reasons why a provider does not serve a group."""

from dataclasses import replace

import pytest

from cyborg_lite.model import obstacles
from cyborg_lite.model.device_profiles import Group
from cyborg_lite.model.explanations import (
    GroupCandidates,
    ProviderCapacity,
    ReasonCode,
)

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
    'fields',
    [{'closed': ReasonCode.MAINTENANCE}, {'free_handles': 1}, {'rp_uuid': 'b'}],
)
def test_can_serve_now_requires_free_handles(
    fields: dict[str, object],
) -> None:
    available = replace(WORST, closed=None, free=2, free_handles=2)
    candidates = replace(CANDIDATES, offers={'a': {'PGPU': 2}})
    assert obstacles.can_serve_now(candidates, available)
    assert not obstacles.can_serve_now(candidates, replace(available, **fields))  # type: ignore[arg-type]  # fields
