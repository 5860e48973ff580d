# SPDX-License-Identifier: Apache-2.0
"""Tests of programming: fetch an image, load it into a card, report the result."""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest

from cyborg_lite.agent.bitstreams.image_cache import ImageCache
from cyborg_lite.agent.bitstreams.loaded_bitstreams import LoadedBitstreams
from cyborg_lite.agent.bitstreams.programming import BitstreamStore, Programming
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.drivers.fpga.intel import IntelFpga
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.bitstreams import BitstreamRefused, LoadingFailed
from cyborg_lite.errors.drivers import DeviceGone, DriverError
from cyborg_lite.model.bitstreams.bitstreams import FUNCTION, LoadOrder
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, Health
from tests.builders.bitstream_files import IMAGE_ID, OTHER_FUNCTION, bitstream, gbs
from tests.doubles.drivers import ScriptedDriver, discovery_result
from tests.doubles.glance import FakeGlance
from tests.hosts.kernel import FakeKernel
from tests.hosts.kernel_regions import LoadOutcome

_CARD = '0000:5e:00.0'
_OPTIONS = {
    'offer_without_reset': False,
    'offer_management_function': True,
    'tool': 'fpgaconf',
    'program_timeout': 60,
}
_TOPOLOGY = json.dumps({'pf_1': {'vf_1': {'capability': 'ipsec'}}})


class FpgaHost:
    """Host with Intel cards and the components of an agent."""

    def __init__(self, tmp_path: Path) -> None:
        kernel = FakeKernel('fpga-intel', tmp_path / 'root')
        self.host = Host('compute-1', kernel.root, kernel)
        self.regions = kernel.regions
        self.images = FakeGlance()
        self.images.contents[IMAGE_ID] = gbs()
        self.store_directory = tmp_path / 'images'
        self.restart()

    def restart(self) -> None:
        """Create the components anew, as a restarted agent does."""
        driver = IntelFpga(self.host, _OPTIONS)
        loaded = LoadedBitstreams(self.store_directory, self.host)
        cache = ImageCache(
            self.store_directory, self.images, largest=10_000, capacity=10_000
        )
        self.discovery = Discovery(self.host, {driver.NAME: driver}, 60, loaded.amend)
        # Discovery results name the driver by its entry point.
        self.discovery.scan()
        self.bitstream_store = BitstreamStore(cache, loaded)
        self.programming = Programming(
            self.discovery, self.bitstream_store, DeviceLocks()
        )

    # Any: fields of an image.
    def program(
        self, address: str = _CARD, region_suffix: str = '', **changes: Any
    ) -> Device:
        order = LoadOrder(address, region_suffix, bitstream(gbs(), **changes))
        return self.programming.program(order)

    @property
    def reported_device(self) -> Device:
        self.discovery.scan()
        devices = self.discovery.report().devices
        (device,) = (item for item in devices if item.control_address == _CARD)
        return device

    @property
    def stored_files(self) -> list[str]:
        return [path.name for path in self.store_directory.glob('sha*')]


@pytest.fixture
def fpga_host(tmp_path: Path) -> FpgaHost:
    return FpgaHost(tmp_path)


def test_program_returns_device_as_reported_later(fpga_host: FpgaHost) -> None:
    device = fpga_host.program()
    assert device.root.attributes[FUNCTION] == OTHER_FUNCTION
    assert device in fpga_host.discovery.report().devices  # without a scan
    assert fpga_host.reported_device == device
    (command,) = fpga_host.regions.commands
    assert Path(command[-1]).parent == fpga_host.store_directory


def test_program_ignores_results_of_older_scan(fpga_host: FpgaHost) -> None:
    """The scan ends after the load, but returns the state before it."""
    driver = fpga_host.discovery.find_driver(_CARD)
    assert driver is not None
    stale, device = list(driver.discover()), fpga_host.program()

    def scan_slowly() -> list[DiscoveryResult]:
        fpga_host.discovery.update_device(device)
        return stale

    with patch.object(driver, 'discover', scan_slowly):
        fpga_host.discovery.scan()
    assert device in fpga_host.discovery.report().devices


@pytest.mark.parametrize('outcome', [LoadOutcome.SUCCESS, LoadOutcome.WRONG_ID])
def test_program_calls_callback_on_success_and_failure(
    outcome: LoadOutcome, fpga_host: FpgaHost
) -> None:
    callback = Mock()
    programming = Programming(
        fpga_host.discovery, fpga_host.bitstream_store, DeviceLocks(), callback
    )
    fpga_host.regions.outcome = outcome
    with suppress(LoadingFailed):
        programming.program(LoadOrder(_CARD, '', bitstream(gbs())))
    callback.assert_called_once_with()


def test_program_repeated_load_is_skipped(fpga_host: FpgaHost) -> None:
    assert fpga_host.program() == fpga_host.program()
    assert len(fpga_host.regions.commands) == 1
    assert fpga_host.images.fetched == [IMAGE_ID]


def test_program_after_restart_loads_again(fpga_host: FpgaHost) -> None:
    """The region may have registers of the last instance that used the function."""
    fpga_host.program()
    fpga_host.restart()
    fpga_host.program()
    assert len(fpga_host.regions.commands) == 2


def test_program_older_order_raises(fpga_host: FpgaHost) -> None:
    """After a pause the agent may receive stale load orders."""
    order = LoadOrder(_CARD, '', bitstream(gbs()))
    fpga_host.programming.program(replace(order, ordered_at=2))
    before = len(fpga_host.regions.commands)
    with pytest.raises(DriverError, match='already loaded into'):
        fpga_host.programming.program(replace(order, ordered_at=1))
    assert len(fpga_host.regions.commands) == before
    fpga_host.programming.program(replace(order, ordered_at=2))
    fpga_host.programming.program(order)


def test_program_mismatching_file_raises_and_is_removed(fpga_host: FpgaHost) -> None:
    content = gbs(function='cd' * 16)
    fpga_host.images.contents[IMAGE_ID] = content
    order = LoadOrder(_CARD, '', bitstream(content))
    with pytest.raises(BitstreamRefused, match='The file contains function'):
        fpga_host.programming.program(order)
    assert fpga_host.stored_files == []
    assert fpga_host.regions.commands == []


@pytest.mark.parametrize(
    'outcome', [LoadOutcome.TIMEOUT, LoadOutcome.HALF_LOADED, LoadOutcome.WRONG_ID]
)
def test_program_failed_load_closes_region_after_restart(
    outcome: LoadOutcome, fpga_host: FpgaHost
) -> None:
    fpga_host.regions.outcome = outcome
    with pytest.raises(LoadingFailed) as caught:
        fpga_host.program()
    for _ in range(2):
        device = fpga_host.reported_device
        assert device.health is Health.DEGRADED
        assert device.root.reserved == device.root.total == 1
        fpga_host.restart()
    assert (
        outcome is LoadOutcome.HALF_LOADED
        or device.health_reason == caught.value.text
        or ('CRC' in device.health_reason)
    )


def test_program_successful_load_opens_region(fpga_host: FpgaHost) -> None:
    fpga_host.regions.outcome = LoadOutcome.WRONG_ID
    with pytest.raises(LoadingFailed):
        fpga_host.program()
    fpga_host.regions.outcome = LoadOutcome.SUCCESS
    fpga_host.program()
    device = fpga_host.reported_device
    assert (device.health, device.root.reserved) == (Health.OK, 0)


def test_program_refused_by_tool_changes_nothing(fpga_host: FpgaHost) -> None:
    before = fpga_host.reported_device
    fpga_host.regions.outcome = LoadOutcome.REFUSED
    with pytest.raises(DriverError):
        fpga_host.program()
    assert fpga_host.reported_device == before


def test_program_reports_topology_until_function_is_replaced(
    fpga_host: FpgaHost,
) -> None:
    device = fpga_host.program(properties={'topology': _TOPOLOGY})
    names = {deployable.name.rpartition('0_')[2] for deployable in device.root.walk()}
    assert {'pf_1', 'vf_1'} <= names
    fpga_host.restart()
    assert fpga_host.reported_device == device
    # After a power loss the card has its factory function.
    fpga_host.regions.power_cycle()
    names = {
        deployable.name.rpartition('0_')[2]
        for deployable in fpga_host.reported_device.root.walk()
    }
    assert 'pf_1' not in names


def test_damaged_record_affects_only_record(fpga_host: FpgaHost) -> None:
    fpga_host.store_directory.mkdir(exist_ok=True)
    for text in ('', '[]', '{"x": 5}', '{"x": {"topology": 5}}', '\0'):
        (fpga_host.store_directory / 'loaded.json').write_text(text)
        fpga_host.restart()
        assert fpga_host.reported_device.root.total == 1
    fpga_host.program()


def test_program_missing_device_raises_device_gone(fpga_host: FpgaHost) -> None:
    with pytest.raises(DeviceGone):
        fpga_host.program('0000:01:00.0')
    assert fpga_host.images.fetched == []


def test_program_device_without_loader_raises(fpga_host: FpgaHost) -> None:
    driver = ScriptedDriver(fpga_host.host, {})
    driver.results = [discovery_result('0000:01:00.0')]
    discovery = Discovery(fpga_host.host, {'scripted': driver}, 60)
    discovery.scan()
    programming = Programming(discovery, fpga_host.bitstream_store, DeviceLocks())
    with pytest.raises(DriverError, match='scripted cannot load bitstreams'):
        programming.program(LoadOrder('0000:01:00.0', '', bitstream()))
