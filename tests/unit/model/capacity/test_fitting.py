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

T4 = 'CUSTOM_T4'
A100 = 'CUSTOM_A100'


def card(name: str, host: str = 'h1', **fields: Any) -> ProviderCapacity:
    return ProviderCapacity(
        **{
            'rp_uuid': name,
            'name': name,
            'hostname': host,
            'resource_class': 'PGPU',
            'traits': frozenset({T4}),
            'total': 1,
            'free': 1,
            'free_handles': 1,
            **fields,
        }
    )


def group(units: int = 1, **traits: str) -> dict[str, str]:
    keys = {f'trait:{name}': value for name, value in traits.items()}
    return {'resources:PGPU': str(units), **keys}


def explain(
    groups: list[dict[str, str]],
    *providers: ProviderCapacity,
    extra_traits: frozenset[str] = frozenset(),
) -> Explanation:
    """Explain the fit with Placement answering as it does for these providers."""
    return fitting.explain_fit(
        [list_candidates(item, providers, extra_traits) for item in groups],
        providers,
        {provider.hostname for provider in providers},
    )


def list_candidates(
    group: dict[str, str],
    providers: tuple[ProviderCapacity, ...],
    extra_traits: frozenset[str],
) -> GroupCandidates:
    requirements = Group.parse(group).requirements
    (name, amount), *_ = requirements.amounts
    offers = {
        provider.rp_uuid: {name: provider.free}
        for provider in providers
        if provider.resource_class == name
        and provider.free >= amount
        and not provider.closed
        and (
            requirements.required <= provider.traits or provider.rp_uuid in extra_traits
        )
        and not requirements.forbidden & provider.traits
    }
    return GroupCandidates(requirements, offers, extra_traits)


def get_only_reason(explanation: Explanation) -> Reason:
    """Return the only reason of the only group of the only host."""
    (host,) = explanation.hosts
    (group_result,) = host.groups
    assert (host.fits, group_result.fits) == (False, False)
    (reason,) = group_result.reasons
    return reason


def test_explain_fit_sorts_hosts_by_name() -> None:
    explanation = explain([group()], card('b', 'h2', free=0), card('a', 'h1'))
    assert [(host.hostname, host.fits) for host in explanation.hosts] == [
        ('h1', True),
        ('h2', False),
    ]
    assert explanation.summary.startswith('1 of 2 hosts')


@pytest.mark.parametrize(
    ('requested', 'fields', 'code', 'word'),
    [
        (group(CUSTOM_A100='required'), {}, ReasonCode.MISSING_TRAIT, A100),
        (group(CUSTOM_T4='forbidden'), {}, ReasonCode.FORBIDDEN_TRAIT, T4),
        (group(2), {}, ReasonCode.TOO_FEW_UNITS, '1 PGPU'),
        (group(), {'resource_class': 'VGPU'}, ReasonCode.MISSING_CLASS, 'PGPU'),
        (group(), {'free': 0}, ReasonCode.NO_FREE_UNIT, '0 of 1'),
        (group(), {'free_handles': 0}, ReasonCode.NO_FREE_UNIT, '0 of 1'),
        (
            group(),
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
    requirements = Group.parse(group()).requirements
    explanation = fitting.explain_fit(
        [GroupCandidates(requirements)], [card('a')], ['h1']
    )
    assert get_only_reason(explanation).code is ReasonCode.NOT_OFFERED
    assert explanation.result is FitResult.NOT_NOW


@pytest.mark.parametrize(
    ('requested', 'code', 'word'),
    [
        (group(2), ReasonCode.TOO_FEW_UNITS, 'Split the group'),
        ({'resources:FPGA': '1'}, ReasonCode.MISSING_CLASS, 'FPGA'),
        ({'resources:GPU': '1'}, ReasonCode.MISSING_CLASS, 'PGPU or VGPU'),
        (group(CUSTOM_A100='required'), ReasonCode.MISSING_TRAIT, A100),
        (group(CUSTOM_T4='forbidden'), ReasonCode.FORBIDDEN_TRAIT, 'forbidden'),
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
    explanation = explain([group(), requested], card('a'), card('b'))
    assert explanation.result is FitResult.NEVER
    (warning,) = explanation.warnings
    assert (warning.code, warning.group) == (code, 1)
    assert word in warning.text


def test_explain_fit_warns_of_traits_on_different_providers() -> None:
    requested = group(CUSTOM_T4='required', CUSTOM_A100='required')
    explanation = explain([requested], card('a'), card('b', traits=frozenset({A100})))
    assert explanation.warnings[0].code is ReasonCode.MISSING_TRAIT
    assert explanation.warnings[0].traits == (A100, T4)


def test_explain_fit_full_cloud_returns_not_now() -> None:
    explanation = explain([group()], card('a', free=0), card('b', 'h2', free=0))
    assert explanation.result is FitResult.NOT_NOW
    assert explanation.warnings == ()


def test_explain_fit_groups_competing_for_card_returns_not_now() -> None:
    busy = card('b', free=0)
    explanation = explain([group(), group()], card('a'), busy)
    (host,) = explanation.hosts
    assert [result.fits for result in host.groups] == [True, True]
    assert not host.fits
    assert host.reasons[0].code is ReasonCode.NOT_TOGETHER
    assert explanation.result is FitResult.NOT_NOW


def test_explain_fit_more_groups_than_cards_returns_never() -> None:
    explanation = explain([group()] * 3, card('a'), card('b'), card('c', 'h2'))
    assert explanation.result is FitResult.NEVER
    assert explanation.warnings[0].code is ReasonCode.NOT_TOGETHER


def test_explain_fit_warns_of_foreign_provider() -> None:
    requirements = Group.parse(group()).requirements
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
