# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules of forecasts, with Placement answering as it does."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from cyborg_lite.model import typed_attributes
from cyborg_lite.model.device_profiles import DeviceProfile, Group
from cyborg_lite.model.explanations import (
    GroupCandidates,
    ProviderCapacity,
    ReasonCode,
)
from cyborg_lite.model.forecasting import (
    AssumedHardware,
    AssumedProvider,
    Cloud,
    Keys,
    forecast_profile,
)
from cyborg_lite.model.forecasts import ForecastResult, ProfileForecast
from cyborg_lite.model.selectors import list_computed_traits
from cyborg_lite.model.typed_attributes import TypedAttribute
from tests.builders.selector_fleets import compile_keys

ONE: Final = {'resources:PGPU': '1'}
SELECTING: Final = {**ONE, **compile_keys(selector='device.memory_mib >= 1GiB')}


def card(rp_uuid: str, host: str = 'h1', **fields: Any) -> ProviderCapacity:
    usual = {'name': host, 'hostname': host, 'resource_class': 'PGPU'}
    amounts = {'traits': frozenset(), 'total': 2, 'free': 2, 'free_handles': 2}
    return ProviderCapacity(rp_uuid, **{**usual, **amounts, **fields})


def build_cloud(*providers: ProviderCapacity, foreign: Sequence[str] = ()) -> Cloud:
    """Return a cloud. Placement also has foreign providers with two units."""

    def find_candidates(keys: Keys) -> GroupCandidates:
        # No provider has the trait of the selector yet.
        computed = list_computed_traits(keys)
        present = {key: keys[key] for key in keys if key not in computed}
        requirements = Group.parse(present).requirements
        ((name, amount),) = requirements.amounts
        offers = {
            item.rp_uuid: {name: item.free}
            for item in providers
            if item.free >= amount and requirements.required <= item.traits
        }
        return GroupCandidates(
            requirements, offers | {key: {name: 2} for key in foreign}
        )

    hosts = frozenset(item.hostname for item in providers)
    return Cloud(providers, hosts, find_candidates)


def forecast(
    cloud: Cloud,
    keys: Keys = ONE,
    added: Sequence[AssumedProvider] = (),
    removed: str = '',
) -> ProfileForecast:
    """Return the effect of new providers, and of the removal of a provider."""
    changed = [item for item in cloud.providers if item.rp_uuid == removed]
    changed += [provider.capacity for provider in added]
    hardware = AssumedHardware(
        removed=frozenset({removed} - {''}),
        added=tuple(added),
        hosts=frozenset(item.hostname for item in changed),
    )
    created_at = datetime(2026, 11, 21, tzinfo=UTC)
    profile = DeviceProfile('uuid', 'gpu', None, (keys,), created_at)
    return forecast_profile(profile, cloud, hardware)


def test_removed_provider_is_no_foreign_provider() -> None:
    cloud = build_cloud(card('a'), card('b', 'h2'))
    result = forecast(cloud, removed='a')
    assert result.after is not None
    assert (result.result, result.after.servers) == (ForecastResult.LOSES, 2)
    assert result.before.warnings == result.after.warnings == ()


def test_foreign_provider_is_warned_of_before_and_after() -> None:
    cloud = build_cloud(card('a'), card('b'), foreign=['other'])
    result = forecast(cloud, removed='a')
    assert result.after is not None
    for capacity in (result.before, result.after):
        (warning,) = capacity.warnings
        assert warning.code is ReasonCode.STRANGERS
        assert warning.providers == ('other',)


def test_added_provider_of_new_host_is_counted() -> None:
    added = AssumedProvider(card('b', 'h2'))
    result = forecast(build_cloud(card('a')), added=[added])
    assert result.after is not None
    assert (result.before.servers, result.after.servers) == (2, 4)
    assert [host.hostname for host in result.after.hosts] == ['h2']
    assert result.after.warnings == ()


@pytest.mark.parametrize(
    'fields', [{'resource_class': 'FPGA'}, {'total': 1, 'free': 1, 'free_handles': 1}]
)
def test_added_provider_that_does_not_fit_is_without_effect(
    fields: dict[str, Any],
) -> None:
    added = AssumedProvider(card('b', **fields))
    keys = {'resources:PGPU': '2'}
    result = forecast(build_cloud(card('a')), keys, added=[added])
    assert result.result is ForecastResult.UNCHANGED


@pytest.mark.parametrize(
    ('memory_mib', 'is_reliable', 'expected'),
    [
        (2048, True, ForecastResult.GAINS),
        (512, True, ForecastResult.UNCHANGED),
        (None, True, ForecastResult.UNKNOWN),
        (2048, False, ForecastResult.UNCHANGED),
    ],
)
def test_selector_decides_by_attributes_of_reliable_agent(
    memory_mib: int | None, is_reliable: bool, expected: ForecastResult
) -> None:
    attributes: tuple[TypedAttribute, ...] = ()
    if memory_mib is not None:
        attributes = (typed_attributes.MEMORY.of(memory_mib),)
    added = AssumedProvider(card('b'), attributes, is_reliable)
    result = forecast(build_cloud(card('a')), SELECTING, added=[added])
    assert result.result is expected
    assert (result.after is None) is bool(result.reasons)
    if result.reasons:
        assert 'groups[0]: The selector compares device.memory_mib' in result.reasons[0]


@pytest.mark.parametrize(
    ('has_known_handles', 'expected'),
    [(False, ForecastResult.UNKNOWN), (True, ForecastResult.UNCHANGED)],
)
def test_handles_of_unknown_type_leave_closed_host_unknown(
    has_known_handles: bool, expected: ForecastResult
) -> None:
    closed = card('b', closed_for_guest=ReasonCode.MDEV_NOT_ATTACHED)
    added = AssumedProvider(closed, has_known_handles=has_known_handles)
    assert forecast(build_cloud(card('a')), added=[added]).result is expected


def test_closed_provider_is_without_effect() -> None:
    closed = card('b', closed=ReasonCode.MAINTENANCE)
    added = AssumedProvider(closed, has_known_handles=False)
    result = forecast(build_cloud(card('a')), added=[added])
    assert result.result is ForecastResult.UNCHANGED
