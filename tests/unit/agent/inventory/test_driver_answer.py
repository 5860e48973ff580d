# SPDX-License-Identifier: Apache-2.0
"""Tests of the validation of the results of a driver."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cyborg_lite.agent.inventory.driver_answer import (
    DriverAnswer,
    DriverScope,
    list_claims,
    validate_results,
)
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult
from tests.doubles.drivers import discovery_result

SCOPE = DriverScope('compute-1', 'scripted')
ADDRESS, OTHER_ADDRESS = '0000:01:00.0', '0000:02:00.0'


def device(address: str = ADDRESS) -> Device:
    discovered_device = discovery_result(address).device
    assert discovered_device is not None
    return discovered_device


# Any: values that fit no field.
def with_values(**values: Any) -> DiscoveryResult:
    return replace(discovery_result(), **values)


def with_device(**values: Any) -> DiscoveryResult:
    return with_values(device=replace(device(), **values))


def with_root(**values: Any) -> DiscoveryResult:
    return with_device(root=replace(device().root, **values))


def test_validate_results_valid_answer_is_returned() -> None:
    results = (
        discovery_result(ADDRESS),
        discovery_result(OTHER_ADDRESS, is_offered=False),
    )
    assert validate_results(iter(results), SCOPE) == DriverAnswer(results)


# Invalid devices of a valid function.
INVALID_DEVICES: list[Callable[[], Any]] = [
    lambda: with_values(device='a string'),
    lambda: with_root(total=2.5),
    lambda: with_device(model='x' * 10_000),
    lambda: with_device(model='\0'),
    lambda: with_device(control_address=OTHER_ADDRESS),
    lambda: with_values(device=None, reason=None),
]
# Values that name no function of the driver.
INVALID_RESULTS: list[Callable[[], Any]] = [
    lambda: 'a string',
    lambda: None,
    lambda: discovery_result(driver='another'),
    lambda: with_values(address=7),
]


@pytest.mark.parametrize('build_result', INVALID_DEVICES)
def test_invalid_device_costs_only_this_device(build_result: Callable[[], Any]) -> None:
    valid = discovery_result('0000:03:00.0')
    answer = validate_results([build_result(), valid], SCOPE)
    assert len(answer.faults) == 1
    withheld, last = answer.results
    assert last == valid
    assert withheld.device is None
    assert withheld.address == ADDRESS
    assert withheld.reason == answer.faults[0]
    assert len(withheld.reason) < 600
    assert withheld.reason.isprintable()


@pytest.mark.parametrize('build_result', INVALID_RESULTS)
def test_invalid_result_costs_only_this_result(build_result: Callable[[], Any]) -> None:
    valid = discovery_result(OTHER_ADDRESS)
    answer = validate_results([build_result(), valid], SCOPE)
    assert answer.results == (valid,)
    assert len(answer.faults) == 1
    with pytest.raises(CyborgError, match='invalid result'):
        validate_results([build_result()], SCOPE)


@pytest.mark.parametrize('is_offered', [True, False])
def test_second_result_of_function_is_dropped(is_offered: bool) -> None:
    first = discovery_result()
    answer = validate_results([first, discovery_result(is_offered=is_offered)], SCOPE)
    assert answer.results == (first,)
    assert 'twice' in answer.faults[0]


def test_second_device_of_same_name_is_withheld() -> None:
    first = discovery_result()
    same_name = replace(device(OTHER_ADDRESS), root=device().root)
    second = replace(discovery_result(OTHER_ADDRESS), device=same_name)
    answer = validate_results([first, second], SCOPE)
    assert [item.device for item in answer.results] == [first.device, None]


def test_answer_without_results_raises() -> None:
    answer: Any = None
    with pytest.raises(TypeError):
        validate_results(answer, SCOPE)


@pytest.mark.parametrize('claim_key', list(list_claims(device())))
def test_validate_results_claim_of_other_driver_withholds(claim_key: str) -> None:
    scope = replace(SCOPE, other_claims={claim_key})
    (result,) = validate_results([discovery_result()], scope).results
    assert result.device is None
    assert f'claimed {claim_key}' in result.reason
