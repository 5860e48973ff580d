# SPDX-License-Identifier: Apache-2.0
"""Drivers run apart: what one does wrong costs the others nothing."""

import logging
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.discovery import Discovery, settled
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Finding, Health
from tests.fakes import sysfs_tree
from tests.fakes.drivers import HangingDriver, ScriptedDriver, finding

_HOST = Host('compute-1', Path('/nonexistent'))
_ONE, _OTHER = '0000:01:00.0', '0000:02:00.0'


@pytest.fixture
def good() -> ScriptedDriver:
    driver = ScriptedDriver(_HOST, {})
    driver.findings = [finding(_ONE, 'good')]
    return driver


@pytest.fixture
def bad() -> ScriptedDriver:
    driver = ScriptedDriver(_HOST, {})
    driver.failure = OSError('the card is on fire')
    return driver


def _discovery(timeout: float = 60.0, **drivers: Driver) -> Discovery:
    return Discovery(_HOST, drivers, timeout)


def test_a_driver_that_raises_costs_only_itself(
    good: ScriptedDriver, bad: ScriptedDriver
) -> None:
    discovery = _discovery(bad=bad, good=good)
    assert discovery.look() == tuple(good.findings)
    assert discovery.silent == {'bad': 'OSError: the card is on fire'}
    assert [device.address for device in discovery.report().devices] == [_ONE]


def test_a_driver_that_hangs_costs_only_itself(good: ScriptedDriver) -> None:
    stuck = HangingDriver(_HOST, {})
    discovery = _discovery(timeout=1.0, stuck=stuck, good=good)
    try:
        assert discovery.look() == tuple(good.findings)
        assert list(discovery.silent) == ['stuck']
        discovery.look()
        assert stuck.looks == 1  # never two looks of one driver at once
        assert good.looks == 2
    finally:
        stuck.let_go.set()


def test_a_driver_that_returns_at_last_is_heard_again() -> None:
    stuck = HangingDriver(_HOST, {})
    stuck.findings = [finding(_OTHER, 'stuck')]
    discovery = _discovery(timeout=1.0, stuck=stuck)
    assert discovery.look() == ()
    stuck.let_go.set()
    (under_way,) = (t for t in threading.enumerate() if t.name == 'discover-stuck')
    under_way.join()
    assert discovery.look() == tuple(stuck.findings)
    assert discovery.silent == {}
    assert discovery.report().devices[0].address == _OTHER


def test_what_a_driver_said_stands_while_it_is_silent(good: ScriptedDriver) -> None:
    """With a word about it; a device that is missing from a report is removed."""
    discovery = _discovery(good=good)
    before = discovery.look()
    good.failure = RuntimeError('not now')
    (stale,) = (finding.device for finding in discovery.look())
    assert stale is not None
    assert stale.health is Health.DEGRADED
    said = 'Driver good does not answer; this is what it said last.'
    assert stale.health_reason == said
    assert replace(stale, health=Health.OK, health_reason='') == before[0].device
    good.failure = None
    assert discovery.look() == before
    assert discovery.silent == {}


def test_a_driver_that_stays_silent_is_no_news_at_each_look(
    good: ScriptedDriver,
) -> None:
    discovery = _discovery(good=good)
    discovery.look()
    good.failure = RuntimeError('not now')
    discovery.look()
    digest = discovery.report().digest
    good.failure = RuntimeError('still not')
    discovery.look()
    assert discovery.report().digest == digest


# --- a device goes ----------------------------------------------------------------


def _healths(discovery: Discovery) -> list[Health]:
    discovery.look()
    return [device.health for device in discovery.report().devices]


def test_a_device_goes_after_several_clean_looks_without_it(
    good: ScriptedDriver,
) -> None:
    discovery = _discovery(good=good)
    assert _healths(discovery) == [Health.OK]
    good.findings = []
    assert _healths(discovery) == [Health.GONE]
    assert discovery.unsettled
    assert _healths(discovery) == [Health.GONE]
    assert discovery.driver_of(_ONE) is good
    assert _healths(discovery) == []
    assert not discovery.unsettled
    assert discovery.driver_of(_ONE) is None


def test_a_look_that_failed_does_not_count(good: ScriptedDriver) -> None:
    discovery = _discovery(good=good)
    discovery.look()
    good.findings = []
    discovery.look()
    good.failure = OSError('sysfs is on fire')
    for _ in range(9):
        assert _healths(discovery) == [Health.GONE]
    good.failure = None
    assert _healths(discovery) == [Health.GONE]
    assert _healths(discovery) == []


def test_a_device_that_is_back_begins_anew(good: ScriptedDriver) -> None:
    discovery = _discovery(good=good)
    here = good.findings
    for findings in (here, [], [], here, [], []):
        good.findings = findings
        healths = _healths(discovery)
        assert healths == [Health.OK if findings else Health.GONE]


def test_a_device_that_is_refused_all_at_once_says_why(good: ScriptedDriver) -> None:
    """What could not be read once may be read at the next look."""
    discovery = _discovery(good=good)
    discovery.look()
    good.findings = [finding(_ONE, 'good', offered=False)]
    (found,) = discovery.look()
    assert found.device is not None
    assert (found.device.health, found.device.health_reason) == (
        Health.GONE,
        'no IOMMU group',
    )
    discovery.look()
    assert discovery.look() == tuple(good.findings)


def test_how_many_looks_it_takes_can_be_chosen(good: ScriptedDriver) -> None:
    discovery = Discovery(_HOST, {'good': good}, 60.0, removal_scans=1)
    discovery.look()
    good.findings = []
    assert _healths(discovery) == []


# --- what an earlier process knew ---------------------------------------------------


def test_a_restart_removes_nothing_by_accident(bad: ScriptedDriver) -> None:
    discovery = _discovery(bad=bad)
    discovery.recall([finding(_ONE, 'bad'), finding(_OTHER, 'another driver')])
    assert _healths(discovery) == [Health.DEGRADED]
    assert discovery.driver_of(_ONE) is bad
    bad.failure = None
    assert [_healths(discovery) for _ in range(3)] == [
        [Health.GONE],
        [Health.GONE],
        [],
    ]


def test_what_is_kept_for_the_next_process_is_what_the_drivers_said(
    good: ScriptedDriver,
) -> None:
    discovery = _discovery(good=good)
    discovery.look()
    expected = tuple(good.findings)
    good.findings = []
    discovery.look()
    assert discovery.reported() == expected


def test_drivers_that_quarrel_are_named(good: ScriptedDriver) -> None:
    rival = ScriptedDriver(_HOST, {})
    rival.findings = [finding(_ONE, 'rival'), finding(_OTHER, 'rival')]
    discovery = _discovery(good=good, rival=rival)
    discovery.look()
    assert discovery.quarrels() == (
        f'{_ONE} is claimed by good and rival: enable only one of them',
    )


def test_a_failure_is_logged_once_until_it_changes(
    bad: ScriptedDriver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    discovery = _discovery(bad=bad)
    for _ in range(3):
        discovery.look()
    bad.failure = OSError('it burnt down')
    discovery.look()
    bad.failure = None
    for _ in range(2):
        discovery.look()
    assert [record.message for record in caplog.records] == [
        'Driver bad failed.',
        'Driver bad failed.',
        'Driver bad answers again.',
    ]


def test_a_driver_whose_device_cannot_be_sent_costs_only_itself(
    good: ScriptedDriver, bad: ScriptedDriver
) -> None:
    """The conductor refuses a whole report for one wrong value in it."""
    wrong = finding(_OTHER, 'bad')
    assert wrong.device is not None
    info = {'bus': 2}
    unit = replace(wrong.device.root.units[0], info=info)  # type: ignore[arg-type]  # it is the point
    root = replace(wrong.device.root, units=(unit,))
    bad.findings = [replace(wrong, device=replace(wrong.device, root=root))]
    bad.failure = None
    discovery = _discovery(bad=bad, good=good)
    assert discovery.look() == tuple(good.findings)
    assert 'MalformedMessage' in discovery.silent['bad']


def _named_as(address: str, by: Finding) -> Finding:
    """Another device whose deployable has the name of that function's."""
    assert by.device is not None
    root = replace(by.device.root, name=f'compute-1_{address}')
    return replace(by, device=replace(by.device, root=root))


@pytest.mark.parametrize(
    'nonsense', [finding(_ONE, 'bad'), _named_as(_ONE, finding(_OTHER, 'bad'))]
)
def test_a_driver_that_claims_what_another_one_has_costs_only_itself(
    good: ScriptedDriver, bad: ScriptedDriver, nonsense: Finding
) -> None:
    bad.failure = None
    bad.findings = [finding(_OTHER, 'bad')]
    discovery = _discovery(bad=bad, good=good)
    before = discovery.look()
    bad.findings = [nonsense]
    after = discovery.look()
    assert after[0] == before[0]
    assert after[1].device is not None
    assert after[1].device.health is Health.DEGRADED
    assert 'which another driver has' in discovery.silent['bad']
    bad.findings = [finding(_OTHER, 'bad')]
    assert discovery.look() == before


def test_a_new_card_that_two_drivers_claim_costs_them_nothing_else(
    good: ScriptedDriver, bad: ScriptedDriver
) -> None:
    new = '0000:03:00.0'
    bad.failure = None
    bad.findings = [finding(_OTHER, 'bad')]
    discovery = _discovery(bad=bad, good=good)
    before = discovery.look()
    bad.findings = [finding(_OTHER, 'bad'), finding(new, 'bad')]
    good.findings = [finding(_ONE, 'good'), finding(new, 'good')]
    for _ in range(2):
        *old, one, other = discovery.look()
        assert tuple(old) == before
        assert one.device is other.device is None


def test_a_driver_that_exits_has_failed(good: ScriptedDriver) -> None:
    discovery = _discovery(good=good)
    discovery.look()
    good.failure = SystemExit(3)
    assert _healths(discovery) == [Health.DEGRADED]
    assert discovery.silent == {'good': 'SystemExit: 3'}


def test_two_drivers_that_give_one_name_are_both_refused() -> None:
    found = settled([finding(_ONE, 'a'), _named_as(_ONE, finding(_OTHER, 'b'))])
    assert [each.device for each in found] == [None, None]
    assert {each.reason for each in found} == {
        'claimed by a and b: enable only one of them'
    }


def test_two_drivers_that_offer_one_function_are_both_refused() -> None:
    found = settled([finding(_ONE, 'a'), finding(_OTHER, 'a'), finding(_ONE, 'b')])
    assert [(each.address, each.driver, bool(each.device)) for each in found] == [
        (_ONE, 'a', False),
        (_ONE, 'b', False),
        (_OTHER, 'a', True),
    ]
    assert found[0].reason == 'claimed by a and b: enable only one of them'


def test_a_driver_that_refuses_does_not_stop_one_that_offers() -> None:
    offer = finding(_ONE, 'b')
    assert settled([finding(_ONE, 'a', offered=False), offer]) == (offer,)


def test_of_two_refusals_one_is_told() -> None:
    first = finding(_ONE, 'a', offered=False)
    assert settled([first, finding(_ONE, 'b', offered=False)]) == (first,)


def test_the_report_does_not_depend_on_the_order_of_drivers() -> None:
    one, other = ScriptedDriver(_HOST, {}), ScriptedDriver(_HOST, {})
    one.findings, other.findings = [finding(_ONE, 'a')], [finding(_OTHER, 'b')]
    reports = []
    for drivers in ({'a': one, 'b': other}, {'b': other, 'a': one}):
        discovery = Discovery(_HOST, drivers, 60.0)
        discovery.look()
        reports.append(discovery.report())
    assert reports[0] == reports[1]


def test_the_driver_of_a_function_is_the_one_that_judged_it(
    good: ScriptedDriver,
) -> None:
    good.findings = [finding(_ONE, 'good'), finding(_OTHER, 'good', offered=False)]
    discovery = _discovery(good=good)
    assert discovery.driver_of(_ONE) is None
    discovery.look()
    assert discovery.driver_of(_ONE) is good
    assert discovery.driver_of(_OTHER) is good
    assert discovery.driver_of('0000:03:00.0') is None


def test_the_report_says_which_boot_it_is_of(tmp_path: Path) -> None:
    built = sysfs_tree.build('t4-mdev', tmp_path)
    host = Host('compute-1', tmp_path)
    driver = NvidiaGpu(host, {'offer_without_reset': False})
    discovery = Discovery(host, {'nvidia_gpu_driver': driver}, 60.0)
    discovery.look()
    report = discovery.report()
    assert (report.hostname, report.boot_id) == ('compute-1', built.boot_id)
    assert '0000:3b:00.0' in {device.address for device in report.devices}


def test_no_driver_finds_nothing() -> None:
    discovery = _discovery()
    assert discovery.look() == ()
    assert discovery.report().devices == ()
