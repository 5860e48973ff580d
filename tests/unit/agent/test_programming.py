# SPDX-License-Identifier: Apache-2.0
"""A whole load on a host: fetched, loaded into a fabricated card, and told."""

import json
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.image_cache import ImageCache
from cyborg_lite.agent.loaded import LoadedRegions
from cyborg_lite.agent.programming import Programming, Stock
from cyborg_lite.drivers.intel_fpga import IntelFpga
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import (
    BitstreamRefused,
    DeviceGone,
    DriverError,
    LoadingFailed,
)
from cyborg_lite.model.bitstreams import FUNCTION, LoadOrder
from cyborg_lite.model.inventory import Device, Finding, Health
from tests.fakes import sysfs_tree
from tests.fakes.bitstream_files import IMAGE_ID, OTHER_FUNCTION, bitstream, gbs
from tests.fakes.drivers import ScriptedDriver, finding
from tests.fakes.host_tools import FakeTool
from tests.fakes.images import FakeImages
from tests.fakes.kernel_regions import Fate

_CARD = '0000:5e:00.0'
_OPTIONS = {'offer_without_reset': False, 'tool': 'fpgaconf', 'program_timeout': 60}
_TOPOLOGY = json.dumps({'pf_1': {'vf_1': {'capability': 'ipsec'}}})


class Bench:
    """A host with Intel cards and an agent's rooms around them."""

    def __init__(self, tmp_path: Path) -> None:
        self.host = Host('compute-1', tmp_path / 'root')
        sysfs_tree.build('fpga-intel', self.host.root)
        directory = (self.host.root / f'sys/bus/pci/devices/{_CARD}').resolve()
        region = directory / 'fpga_region/region0'
        manager = region / 'dfl-fme.0/dfl-fme-mgr.0/fpga_manager/fpga0'
        self.tool = FakeTool(region / 'dfl-port.0/afu_id', manager, OTHER_FUNCTION)
        self.images = FakeImages()
        self.images.contents[IMAGE_ID] = gbs()
        self.stock = tmp_path / 'stock'
        self.restart()

    def restart(self) -> None:
        """The agent, with nothing in its memory."""
        driver = IntelFpga(self.host, _OPTIONS, self.tool)
        loaded = LoadedRegions(self.stock)
        cache = ImageCache(self.stock, self.images, largest=10_000, capacity=10_000)
        self.discovery = Discovery(self.host, {driver.NAME: driver}, 60, loaded.amended)
        # The findings of Discovery name the driver by its entry point.
        self.discovery.look()
        self.kept_stock = Stock(cache, loaded)
        self.programming = Programming(self.discovery, self.kept_stock)

    # Any: fields of an image.
    def program(self, address: str = _CARD, part: str = '', **changes: Any) -> Device:
        order = LoadOrder(address, part, bitstream(gbs(), **changes))
        return self.programming.program(order)

    @property
    def reported(self) -> Device:
        self.discovery.look()
        devices = self.discovery.report().devices
        (device,) = (each for each in devices if each.address == _CARD)
        return device

    @property
    def kept(self) -> list[str]:
        return [each.name for each in self.stock.glob('sha*')]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_what_is_answered_is_what_is_reported_from_then_on(bench: Bench) -> None:
    device = bench.program()
    assert device.root.attributes[FUNCTION] == OTHER_FUNCTION
    assert bench.reported == device
    (command,) = bench.tool.commands
    assert Path(command[-1]).parent == bench.stock


def test_nobody_has_to_look_before_it_is_reported(bench: Bench) -> None:
    device = bench.program()
    assert device in bench.discovery.report().devices


def test_a_look_that_began_before_the_load_does_not_count(bench: Bench) -> None:
    """It may end after it, with what was true when it began."""
    driver = bench.discovery.driver_of(_CARD)
    assert driver is not None
    stale, device = list(driver.discover()), bench.program()

    def slow() -> list[Finding]:
        bench.discovery.learn(device)
        return stale

    with patch.object(driver, 'discover', slow):
        bench.discovery.look()
    assert device in bench.discovery.report().devices


@pytest.mark.parametrize('fate', [Fate.SUCCESS, Fate.WRONG_ID])
def test_whoever_looks_at_the_hardware_is_told_of_a_load(
    fate: Fate, bench: Bench
) -> None:
    told = Mock()
    programming = Programming(bench.discovery, bench.kept_stock, told)
    bench.tool.fate = fate
    with suppress(LoadingFailed):
        programming.program(LoadOrder(_CARD, '', bitstream(gbs())))
    told.assert_called_once_with()


def test_it_is_safe_to_repeat(bench: Bench) -> None:
    assert bench.program() == bench.program()
    assert len(bench.tool.commands) == 1
    assert bench.images.fetched == [IMAGE_ID]


def test_an_order_that_comes_too_late_is_not_carried_out(bench: Bench) -> None:
    """The host stood still, and hears of a load that was undone meanwhile."""
    order = LoadOrder(_CARD, '', bitstream(gbs()))
    bench.programming.program(replace(order, ordered_at=2))
    before = len(bench.tool.commands)
    with pytest.raises(DriverError, match='since it was ordered'):
        bench.programming.program(replace(order, ordered_at=1))
    assert len(bench.tool.commands) == before
    bench.programming.program(replace(order, ordered_at=2))
    bench.programming.program(order)


def test_a_file_that_is_not_what_it_says_is_not_kept(bench: Bench) -> None:
    content = gbs(function='cd' * 16)
    bench.images.contents[IMAGE_ID] = content
    order = LoadOrder(_CARD, '', bitstream(content))
    with pytest.raises(BitstreamRefused, match='The file holds function'):
        bench.programming.program(order)
    assert bench.kept == []
    assert bench.tool.commands == []


@pytest.mark.parametrize(
    'changes', [{'hash_value': 'ab' * 64}, {'size': 10}, {'size': 20_000}]
)
def test_what_cannot_be_fetched_never_reaches_the_driver(
    changes: dict[str, Any], bench: Bench
) -> None:
    before = bench.reported
    with pytest.raises(BitstreamRefused):
        bench.program(**changes)
    assert bench.tool.commands == []
    assert bench.kept == []
    assert bench.reported == before


@pytest.mark.parametrize('fate', [Fate.TIMEOUT, Fate.HALF_LOADED, Fate.WRONG_ID])
def test_a_region_that_failed_stays_closed_over_a_restart(
    fate: Fate, bench: Bench
) -> None:
    bench.tool.fate = fate
    with pytest.raises(LoadingFailed) as caught:
        bench.program()
    for _ in range(2):
        device = bench.reported
        assert device.health is Health.DEGRADED
        assert device.root.reserved == device.root.total == 1
        bench.restart()
    assert (
        fate is Fate.HALF_LOADED
        or device.health_reason == caught.value.text
        or ('CRC' in device.health_reason)
    )


def test_a_load_that_goes_well_opens_it_again(bench: Bench) -> None:
    bench.tool.fate = Fate.WRONG_ID
    with pytest.raises(LoadingFailed):
        bench.program()
    bench.tool.fate = Fate.SUCCESS
    bench.program()
    device = bench.reported
    assert (device.health, device.root.reserved) == (Health.OK, 0)


def test_a_tool_that_changed_nothing_closes_nothing(bench: Bench) -> None:
    before = bench.reported
    bench.tool.fate = Fate.REFUSED
    with pytest.raises(DriverError):
        bench.program()
    assert bench.reported == before


def test_the_functions_of_an_image_are_shown_while_it_is_there(bench: Bench) -> None:
    device = bench.program(properties={'topology': _TOPOLOGY})
    names = {each.name.rpartition('0_')[2] for each in device.root.walk()}
    assert {'pf_1', 'vf_1'} <= names
    bench.restart()
    assert bench.reported == device
    # The card lost power: its factory function is back.
    bench.tool._show('d8424dc4a4a3c413f89e433683f9040b')
    names = {each.name.rpartition('0_')[2] for each in bench.reported.root.walk()}
    assert 'pf_1' not in names


def test_a_damaged_record_costs_only_itself(bench: Bench) -> None:
    bench.stock.mkdir(exist_ok=True)
    for text in ('', '[]', '{"x": 5}', '{"x": {"topology": 5}}', '\0'):
        (bench.stock / 'loaded.json').write_text(text)
        bench.restart()
        assert bench.reported.root.total == 1
    bench.program()


def test_a_device_that_is_not_there_is_gone(bench: Bench) -> None:
    with pytest.raises(DeviceGone):
        bench.program('0000:01:00.0')
    assert bench.images.fetched == []


def test_what_is_no_fpga_cannot_be_loaded(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    driver = ScriptedDriver(bench.host, {})
    driver.findings = [finding('0000:01:00.0')]
    discovery = Discovery(bench.host, {'scripted': driver}, 60)
    discovery.look()
    cache = ImageCache(bench.stock, bench.images, largest=1, capacity=1)
    programming = Programming(discovery, Stock(cache, LoadedRegions(bench.stock)))
    with pytest.raises(DriverError, match='scripted cannot load anything'):
        programming.program(LoadOrder('0000:01:00.0', '', bitstream()))


def test_two_loads_of_a_card_never_meet(bench: Bench) -> None:
    third = 'cd' * 16
    other = bitstream(
        gbs(function=third),
        id='aaaaaaaa-0000-4000-8000-000000000001',
        properties={'function_uuid': third},
    )
    bench.images.contents[other.image_id] = gbs(function=third)
    entered, second_entered = threading.Event(), threading.Event()
    met = []

    def meanwhile() -> None:
        if entered.is_set():
            second_entered.set()
            bench.tool.loads = third
            return
        entered.set()
        # Without the lock the other load comes in at once.
        met.append(second_entered.wait(0.3))

    bench.tool.meanwhile = meanwhile
    first = threading.Thread(target=bench.program)
    first.start()
    assert entered.wait(30)
    device = bench.programming.program(LoadOrder(_CARD, '', other))
    first.join()
    assert met == [False]
    assert device.root.attributes[FUNCTION] == third
    assert bench.reported == device
