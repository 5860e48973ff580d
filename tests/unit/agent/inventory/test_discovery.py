# SPDX-License-Identifier: Apache-2.0
"""Tests of discovery: faults of one driver do not affect the other drivers."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.discovery import Discovery, resolve_conflicts
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.inventory.host_report import DiscoveryResult, Health
from tests.doubles.drivers import HangingDriver, ScriptedDriver, discovery_result

_HOST = Host('compute-1', Path('/nonexistent'))
_FIRST, _SECOND = '0000:01:00.0', '0000:02:00.0'


@pytest.fixture
def healthy() -> ScriptedDriver:
    driver = ScriptedDriver(_HOST, {})
    driver.results = [discovery_result(_FIRST, 'healthy')]
    return driver


@pytest.fixture
def faulty() -> ScriptedDriver:
    driver = ScriptedDriver(_HOST, {})
    driver.failure = OSError('the card is on fire')
    return driver


def _discovery(timeout: float = 60.0, **drivers: Driver) -> Discovery:
    return Discovery(_HOST, drivers, timeout)


def test_scan_driver_raises_affects_only_failing_driver(
    healthy: ScriptedDriver, faulty: ScriptedDriver
) -> None:
    discovery = _discovery(faulty=faulty, healthy=healthy)
    assert discovery.scan() == tuple(healthy.results)
    assert discovery.unavailable_drivers == {'faulty': 'OSError: the card is on fire'}
    assert [device.control_address for device in discovery.report().devices] == [_FIRST]


def test_scan_driver_hangs_affects_only_failing_driver(healthy: ScriptedDriver) -> None:
    hanging = HangingDriver(_HOST, {})
    discovery = _discovery(timeout=1.0, hanging=hanging, healthy=healthy)
    try:
        assert discovery.scan() == tuple(healthy.results)
        assert list(discovery.unavailable_drivers) == ['hanging']
        discovery.scan()
        assert (
            hanging.scan_count == 1
        )  # no second scan of a driver while the first one runs
        assert healthy.scan_count == 2
    finally:
        hanging.continue_scan.set()


def test_scan_hanging_driver_returns_later_uses_results() -> None:
    hanging = HangingDriver(_HOST, {})
    hanging.results = [discovery_result(_SECOND, 'hanging')]
    discovery = _discovery(timeout=1.0, hanging=hanging)
    assert discovery.scan() == ()
    hanging.continue_scan.set()
    (scan_thread,) = (t for t in threading.enumerate() if t.name == 'discover-hanging')
    scan_thread.join()
    assert discovery.scan() == tuple(hanging.results)
    assert discovery.unavailable_drivers == {}
    assert discovery.report().devices[0].control_address == _SECOND


# --- removal of devices ---


def _scan_healths(discovery: Discovery) -> list[Health]:
    discovery.scan()
    return [device.health for device in discovery.report().devices]


def test_failed_scan_does_not_count_for_removal(healthy: ScriptedDriver) -> None:
    discovery = _discovery(healthy=healthy)
    discovery.scan()
    healthy.results = []
    discovery.scan()
    healthy.failure = OSError('sysfs is on fire')
    for _ in range(9):
        assert _scan_healths(discovery) == [Health.GONE]
    healthy.failure = None
    assert _scan_healths(discovery) == [Health.GONE]
    assert _scan_healths(discovery) == []


def test_returned_device_resets_missing_scans(healthy: ScriptedDriver) -> None:
    discovery = _discovery(healthy=healthy)
    present = healthy.results
    for results in (present, [], [], present, [], []):
        healthy.results = results
        healths = _scan_healths(discovery)
        assert healths == [Health.OK if results else Health.GONE]


def test_refused_device_is_gone_with_reason(healthy: ScriptedDriver) -> None:
    """A value that is unreadable now may be readable in the next scan."""
    discovery = _discovery(healthy=healthy)
    discovery.scan()
    healthy.results = [discovery_result(_FIRST, 'healthy', is_offered=False)]
    (result,) = discovery.scan()
    assert result.device is not None
    assert (result.device.health, result.device.health_reason) == (
        Health.GONE,
        'no IOMMU group',
    )
    discovery.scan()
    assert discovery.scan() == tuple(healthy.results)


def test_removal_scans_sets_number_of_scans(healthy: ScriptedDriver) -> None:
    discovery = Discovery(_HOST, {'healthy': healthy}, 60.0, removal_scans=1)
    discovery.scan()
    healthy.results = []
    assert _scan_healths(discovery) == []


# --- claims of several drivers ---


def test_list_conflicts_names_conflicting_drivers(healthy: ScriptedDriver) -> None:
    rival = ScriptedDriver(_HOST, {})
    rival.results = [
        discovery_result(_FIRST, 'rival'),
        discovery_result(_SECOND, 'rival'),
    ]
    discovery = _discovery(healthy=healthy, rival=rival)
    discovery.scan()
    assert discovery.list_conflicts() == (
        f'{_FIRST} is claimed by healthy and rival: enable only one of them',
    )


def _with_name_of(address: str, result: DiscoveryResult) -> DiscoveryResult:
    """Return a result whose deployable has the name of the device at the address."""
    assert result.device is not None
    root = replace(result.device.root, name=f'compute-1_{address}')
    return replace(result, device=replace(result.device, root=root))


def test_scan_claim_of_other_device_degrades_device(
    healthy: ScriptedDriver, faulty: ScriptedDriver
) -> None:
    faulty.failure = None
    valid = discovery_result(_SECOND, 'faulty')
    faulty.results = [valid]
    discovery = _discovery(faulty=faulty, healthy=healthy)
    before = discovery.scan()
    faulty.results = [_with_name_of(_FIRST, valid)]
    after = discovery.scan()
    assert after[0] == before[0]
    assert after[1].device is not None
    assert valid.device is not None
    assert after[1].device.root == valid.device.root
    assert after[1].device.health is Health.DEGRADED
    assert 'which another driver claims' in after[1].device.health_reason
    faulty.results = [valid]
    assert discovery.scan() == before


def test_scan_claim_of_other_address_is_withheld(
    healthy: ScriptedDriver, faulty: ScriptedDriver
) -> None:
    faulty.failure = None
    faulty.results = []
    discovery = _discovery(faulty=faulty, healthy=healthy)
    discovery.scan()
    faulty.results = [discovery_result(_FIRST, 'faulty')]
    results = discovery.scan()
    assert [result.driver for result in results if result.device] == ['healthy']


def test_scan_new_device_claimed_twice_refuses_only_it(
    healthy: ScriptedDriver, faulty: ScriptedDriver
) -> None:
    new_address = '0000:03:00.0'
    faulty.failure = None
    faulty.results = [discovery_result(_SECOND, 'faulty')]
    discovery = _discovery(faulty=faulty, healthy=healthy)
    before = discovery.scan()
    faulty.results = [
        discovery_result(_SECOND, 'faulty'),
        discovery_result(new_address, 'faulty'),
    ]
    healthy.results = [
        discovery_result(_FIRST, 'healthy'),
        discovery_result(new_address, 'healthy'),
    ]
    for _ in range(2):
        *unchanged, first_claim, second_claim = discovery.scan()
        assert tuple(unchanged) == before
        assert first_claim.device is second_claim.device is None


def test_scan_driver_exits_counts_as_failure(healthy: ScriptedDriver) -> None:
    discovery = _discovery(healthy=healthy)
    discovery.scan()
    healthy.failure = SystemExit(3)
    assert _scan_healths(discovery) == [Health.DEGRADED]
    assert discovery.unavailable_drivers == {'healthy': 'SystemExit: 3'}


def _with_handle_of(address: str, result: DiscoveryResult) -> DiscoveryResult:
    """Return a result whose handle is the function at the address."""
    assert result.device is not None
    (handle,) = result.device.root.handles
    root = replace(result.device.root, handles=(replace(handle, key=address),))
    return replace(result, device=replace(result.device, root=root))


@pytest.mark.parametrize(
    'second',
    [
        discovery_result(_FIRST, 'b'),
        _with_name_of(_FIRST, discovery_result(_SECOND, 'b')),
        # A driver offers a card, and another one offers a function of this card.
        _with_handle_of(_FIRST, discovery_result(_SECOND, 'b')),
    ],
)
def test_resolve_conflicts_refuses_both_claims(second: DiscoveryResult) -> None:
    unrelated = discovery_result('0000:03:00.0', 'a')
    results = resolve_conflicts([unrelated, discovery_result(_FIRST, 'a'), second])
    refused = [result for result in results if result.device is None]
    assert {result.driver for result in refused} == {'a', 'b'}
    assert {result.reason for result in refused} == {
        'claimed by a and b: enable only one of them'
    }
    assert [result for result in results if result.device] == [unrelated]


@pytest.mark.parametrize('is_offered', [True, False])
def test_resolve_conflicts_refused_result_does_not_conflict(is_offered: bool) -> None:
    """The first one of two refusals is returned."""
    refused = discovery_result(_FIRST, 'a', is_offered=False)
    rival = discovery_result(_FIRST, 'b', is_offered=is_offered)
    expected = rival if is_offered else refused
    assert resolve_conflicts([refused, rival]) == (expected,)
