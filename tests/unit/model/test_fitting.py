# SPDX-License-Identifier: Apache-2.0
"""What a host lacks, in words that programs and operators can tell apart."""

from typing import Any

import pytest

from cyborg_lite.model import fitting
from cyborg_lite.model.explanations import (
    Asked,
    Demand,
    Explanation,
    Reason,
    Supply,
    Verdict,
    Why,
)

T4 = 'CUSTOM_T4'
A100 = 'CUSTOM_A100'


def card(name: str, host: str = 'h1', **fields: Any) -> Supply:
    return Supply(
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


def explained(
    groups: list[dict[str, str]],
    *supplies: Supply,
    marked: frozenset[str] = frozenset(),
) -> Explanation:
    """By a Placement that offers whatever has enough units free and the traits."""
    return fitting.explain(
        [asked(one, supplies, marked) for one in groups],
        supplies,
        {one.hostname for one in supplies},
    )


def asked(
    group: dict[str, str], supplies: tuple[Supply, ...], marked: frozenset[str]
) -> Asked:
    demand = Demand.of(group)
    (name, amount), *_ = demand.amounts
    offers = {
        one.rp_uuid: {name: one.free}
        for one in supplies
        if one.resource_class == name
        and one.free >= amount
        and not one.closed
        and (demand.required <= one.traits or one.rp_uuid in marked)
        and not demand.forbidden & one.traits
    }
    return Asked(demand, offers, marked)


def only(found: Explanation) -> Reason:
    """Of the one host's one group."""
    (host,) = found.hosts
    (verdict,) = host.groups
    assert (host.fits, verdict.fits) == (False, False)
    (reason,) = verdict.reasons
    return reason


def test_a_host_with_a_free_card_fits() -> None:
    found = explained([group(T4='required')], card('a', traits=frozenset({'T4'})))
    assert found.verdict is Verdict.FITS
    assert found.hosts[0].fits
    assert found.hosts[0].groups[0].reasons == ()
    assert found.warnings == ()


def test_hosts_are_told_apart_and_come_in_the_order_of_their_names() -> None:
    found = explained([group()], card('b', 'h2', free=0), card('a', 'h1'))
    assert [(one.hostname, one.fits) for one in found.hosts] == [
        ('h1', True),
        ('h2', False),
    ]
    assert found.summary.startswith('1 of 2 hosts')


@pytest.mark.parametrize(
    ('wanted', 'fields', 'why', 'word'),
    [
        (group(CUSTOM_A100='required'), {}, Why.MISSING_TRAIT, A100),
        (group(CUSTOM_T4='forbidden'), {}, Why.FORBIDDEN_TRAIT, T4),
        (group(2), {}, Why.TOO_FEW_UNITS, '1 PGPU'),
        (group(), {'resource_class': 'VGPU'}, Why.MISSING_CLASS, 'PGPU'),
        (group(), {'free': 0}, Why.NO_FREE_UNIT, '0 of 1'),
        (group(), {'free_handles': 0}, Why.NO_FREE_UNIT, '0 of 1'),
        (
            group(),
            {'closed': Why.MAINTENANCE, 'closed_text': 'A new fan.'},
            Why.MAINTENANCE,
            'fan',
        ),
    ],
)
def test_the_first_thing_that_is_missing_is_named(
    wanted: dict[str, str], fields: dict[str, Any], why: Why, word: str
) -> None:
    reason = only(explained([wanted], card('a', **fields)))
    assert reason.why is why
    assert word in reason.text
    assert reason.group == 0


def test_equal_reasons_of_a_host_are_one_with_all_their_providers() -> None:
    found = explained([group()], card('a', free=0), card('b', free=0))
    assert only(found).providers == ('a', 'b')


def test_what_placement_does_not_offer_for_reasons_of_its_own_is_said() -> None:
    demand = Demand.of(group())
    found = fitting.explain([Asked(demand)], [card('a')], ['h1'])
    assert only(found).why is Why.NOT_OFFERED
    assert found.verdict is Verdict.NOT_NOW


def test_a_trait_that_an_operator_added_in_placement_counts() -> None:
    wanted = [group(CUSTOM_A100='required')]
    full = card('a', free=0)
    assert only(explained(wanted, full, marked=frozenset('a'))).why is Why.NO_FREE_UNIT
    assert explained(wanted, full, marked=frozenset('a')).verdict is Verdict.NOT_NOW


# --- what can never be --------------------------------------------------------------


@pytest.mark.parametrize(
    ('wanted', 'why', 'word'),
    [
        (group(2), Why.TOO_FEW_UNITS, 'make more groups'),
        ({'resources:FPGA': '1'}, Why.MISSING_CLASS, 'FPGA'),
        ({'resources:GPU': '1'}, Why.MISSING_CLASS, 'PGPU or VGPU'),
        (group(CUSTOM_A100='required'), Why.MISSING_TRAIT, A100),
        (group(CUSTOM_T4='forbidden'), Why.FORBIDDEN_TRAIT, 'forbidden'),
        (
            {'resources:FPGA': '1', 'resources:PGPU': '1'},
            Why.SEVERAL_CLASSES,
            'FPGA and PGPU',
        ),
    ],
)
def test_what_no_provider_could_serve_were_it_free_is_warned_of(
    wanted: dict[str, str], why: Why, word: str
) -> None:
    found = explained([group(), wanted], card('a'), card('b'))
    assert found.verdict is Verdict.NEVER
    (warning,) = found.warnings
    assert (warning.why, warning.group) == (why, 1)
    assert word in warning.text


def test_traits_that_no_one_provider_has_all_of() -> None:
    wanted = group(CUSTOM_T4='required', CUSTOM_A100='required')
    found = explained([wanted], card('a'), card('b', traits=frozenset({A100})))
    assert found.warnings[0].why is Why.MISSING_TRAIT
    assert found.warnings[0].traits == (A100, T4)


def test_a_full_cloud_is_not_an_impossible_one() -> None:
    found = explained([group()], card('a', free=0), card('b', 'h2', free=0))
    assert found.verdict is Verdict.NOT_NOW
    assert found.warnings == ()


def test_groups_that_fit_alone_but_not_at_once() -> None:
    busy = card('b', free=0)
    found = explained([group(), group()], card('a'), busy)
    (host,) = found.hosts
    assert [one.fits for one in host.groups] == [True, True]
    assert not host.fits
    assert host.reasons[0].why is Why.NOT_TOGETHER
    assert found.verdict is Verdict.NOT_NOW


def test_more_groups_than_any_host_has_cards_can_never_be() -> None:
    found = explained([group()] * 3, card('a'), card('b'), card('c', 'h2'))
    assert found.verdict is Verdict.NEVER
    assert found.warnings[0].why is Why.NOT_TOGETHER


def test_what_strangers_offer_is_warned_of() -> None:
    demand = Demand.of(group())
    offers = {'theirs': {'PGPU': 1}, 'a': {'PGPU': 1}}
    found = fitting.explain([Asked(demand, offers)], [card('a')], ['h1'])
    (warning,) = found.warnings
    assert (warning.why, warning.providers) == (Why.STRANGERS, ('theirs',))
    assert found.verdict is Verdict.FITS


def test_both_requests_of_one_card_share_its_handle() -> None:
    wanted = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
    fields: Any = {'resource_class': 'FPGA', 'traits': {'CUSTOM_FPGA_XILINX'}}
    assert explained([wanted], card('a', **fields)).verdict is Verdict.FITS
