# SPDX-License-Identifier: Apache-2.0
"""Tests of the explanation why hosts fit or do not fit a device profile."""

from typing import Any

import pytest

from cyborg_lite.model.capacity import fitting
from cyborg_lite.model.capacity.explanations import (
    Explanation,
    FitResult,
    GroupCandidates,
    ProviderCapacity,
    Reason,
    ReasonCode,
)
from cyborg_lite.model.profiles.device_profiles import Group
from tests.builders.capacities import build_group, build_provider, list_candidates

T4 = 'CUSTOM_T4'
A100 = 'CUSTOM_A100'


def card(name: str, host: str = 'h1', **fields: Any) -> ProviderCapacity:
    return build_provider(name, host, **{'traits': frozenset({T4}), **fields})


def explain(groups: list[dict[str, str]], *providers: ProviderCapacity) -> Explanation:
    """Explain the fit with Placement answering as it does for these providers."""
    return fitting.explain_fit(
        [list_candidates(item, providers) for item in groups],
        providers,
        {provider.hostname for provider in providers},
    )


def get_only_reason(explanation: Explanation) -> Reason:
    """Return the only reason of the only group of the only host."""
    (host,) = explanation.hosts
    (group_result,) = host.groups
    assert (host.fits, group_result.fits) == (False, False)
    (reason,) = group_result.reasons
    return reason


@pytest.mark.parametrize(
    ('requested', 'fields', 'code', 'word'),
    [
        (build_group(CUSTOM_A100='required'), {}, ReasonCode.MISSING_TRAIT, A100),
        (build_group(CUSTOM_T4='forbidden'), {}, ReasonCode.FORBIDDEN_TRAIT, T4),
        (build_group(2), {}, ReasonCode.TOO_FEW_UNITS, '1 PGPU'),
        (build_group(), {'resource_class': 'VGPU'}, ReasonCode.MISSING_CLASS, 'PGPU'),
        (build_group(), {'free': 0}, ReasonCode.NO_FREE_UNIT, '0 of 1'),
        (build_group(), {'free_handles': 0}, ReasonCode.NO_FREE_UNIT, '0 of 1'),
        (
            build_group(),
            {'closed': ReasonCode.MAINTENANCE, 'closed_text': 'A new fan.'},
            ReasonCode.MAINTENANCE,
            'fan',
        ),
    ],
)
def test_explain_fit_names_first_missing_condition(
    requested: dict[str, str], fields: dict[str, Any], code: ReasonCode, word: str
) -> None:
    reason = get_only_reason(explain([requested], card('a', **fields)))
    assert reason.code is code
    assert word in reason.text
    assert reason.group == 0


def test_explain_fit_provider_not_offered_by_placement_is_reported() -> None:
    requirements = Group.parse(build_group()).requirements
    explanation = fitting.explain_fit(
        [GroupCandidates(requirements)], [card('a')], ['h1']
    )
    assert get_only_reason(explanation).code is ReasonCode.NOT_OFFERED
    assert explanation.result is FitResult.NOT_NOW


@pytest.mark.parametrize(
    ('requested', 'code', 'word'),
    [
        (build_group(2), ReasonCode.TOO_FEW_UNITS, 'Split the group'),
        ({'resources:FPGA': '1'}, ReasonCode.MISSING_CLASS, 'FPGA'),
        ({'resources:GPU': '1'}, ReasonCode.MISSING_CLASS, 'PGPU or VGPU'),
        (build_group(CUSTOM_A100='required'), ReasonCode.MISSING_TRAIT, A100),
        (build_group(CUSTOM_T4='forbidden'), ReasonCode.FORBIDDEN_TRAIT, 'forbidden'),
        (
            {'resources:FPGA': '1', 'resources:PGPU': '1'},
            ReasonCode.SEVERAL_CLASSES,
            'FPGA and PGPU',
        ),
    ],
)
def test_explain_fit_warns_of_unsatisfiable_requirement(
    requested: dict[str, str], code: ReasonCode, word: str
) -> None:
    explanation = explain([build_group(), requested], card('a'), card('b'))
    assert explanation.result is FitResult.NEVER
    (warning,) = explanation.warnings
    assert (warning.code, warning.group) == (code, 1)
    assert word in warning.text


def test_explain_fit_warns_of_traits_on_different_providers() -> None:
    requested = build_group(CUSTOM_T4='required', CUSTOM_A100='required')
    explanation = explain([requested], card('a'), card('b', traits=frozenset({A100})))
    assert explanation.warnings[0].code is ReasonCode.MISSING_TRAIT
    assert explanation.warnings[0].traits == (A100, T4)


def test_explain_fit_full_cloud_returns_not_now() -> None:
    explanation = explain([build_group()], card('a', free=0), card('b', 'h2', free=0))
    assert explanation.result is FitResult.NOT_NOW
    assert explanation.warnings == ()


def test_explain_fit_groups_competing_for_card_returns_not_now() -> None:
    busy = card('b', free=0)
    explanation = explain([build_group(), build_group()], card('a'), busy)
    (host,) = explanation.hosts
    assert [result.fits for result in host.groups] == [True, True]
    assert not host.fits
    assert host.reasons[0].code is ReasonCode.NOT_TOGETHER
    assert explanation.result is FitResult.NOT_NOW


def test_explain_fit_more_groups_than_cards_returns_never() -> None:
    explanation = explain([build_group()] * 3, card('a'), card('b'), card('c', 'h2'))
    assert explanation.result is FitResult.NEVER
    assert explanation.warnings[0].code is ReasonCode.NOT_TOGETHER


def test_explain_fit_warns_of_foreign_provider() -> None:
    requirements = Group.parse(build_group()).requirements
    offers = {'foreign': {'PGPU': 1}, 'a': {'PGPU': 1}}
    explanation = fitting.explain_fit(
        [GroupCandidates(requirements, offers)], [card('a')], ['h1']
    )
    (warning,) = explanation.warnings
    assert (warning.code, warning.providers) == (ReasonCode.STRANGERS, ('foreign',))
    assert explanation.result is FitResult.FITS


def test_explain_fit_xilinx_arqs_share_handle() -> None:
    requested = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
    fields: Any = {'resource_class': 'FPGA', 'traits': {'CUSTOM_FPGA_XILINX'}}
    assert explain([requested], card('a', **fields)).result is FitResult.FITS
