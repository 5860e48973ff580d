# SPDX-License-Identifier: Apache-2.0
"""Tests of the classification of whole cards for passthrough."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.timed_scan import TimedScan
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.pci.functions import custom_name, handle_info
from cyborg_lite.model.inventory.host_report import DiscoveryResult, Health
from tests.hosts.hanging_host import HangingHost
from tests.hosts.scans import scan
from tests.hosts.sysfs_device import Plug


class Cards(PciDriver):
    """A minimal driver."""

    NAME: ClassVar[str] = 'cards'
    VENDOR: ClassVar[str] = '10de'
    VENDOR_NAME: ClassVar[str] = 'NVIDIA'
    CLASSES: ClassVar[tuple[str, ...]] = ('0300', '0302', '0380')
    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    MODELS: ClassVar[Mapping[str, str]] = {'1eb8': 'Tesla T4'}


# Any: driver options have various types.
def _results(host: Host, **options: Any) -> dict[str, DiscoveryResult]:
    driver = Cards(host, {'offer_without_reset': False, **options})
    return scan(driver)


def _only(host: Host, **options: Any) -> DiscoveryResult:
    (result,) = _results(host, **options).values()
    return result


def _hanging_cards(host: Host) -> Cards:
    """Return a driver that waits for a short time."""
    driver = Cards(HangingHost(host.name, host.root), {'offer_without_reset': False})
    driver._scan = TimedScan(0.3, 0.3)
    return driver


def _assert_withheld(result: DiscoveryResult, reason: str) -> None:
    """Assert that the device is reported with a reason and without handles."""
    assert result.reason == reason
    assert result.device is not None
    assert result.device.health_reason == reason
    root = result.device.root
    assert (root.resource_class, root.total, root.handles) == (None, 0, ())


def test_classify_free_card_is_offered(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0')
    result = _only(host)
    assert result.reason == 'whole card'
    assert result.device is not None
    device, root = result.device, result.device.root
    assert (device.vendor, device.model, device.driver) == (
        '10de',
        'Tesla T4',
        'NVIDIA',
    )
    assert root.name == 'compute-1_0000:3b:00.0'
    assert (root.resource_class, root.total, root.reserved) == ('PGPU', 1, 0)
    assert root.traits == ('OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8')
    assert root.attributes == {
        'rc': 'PGPU',
        'trait0': 'OWNER_CYBORG',
        'trait1': 'CUSTOM_NVIDIA_1EB8',
    }
    (handle,) = root.handles
    assert handle.key == '0000:3b:00.0'
    assert handle.info == handle_info('0000:3b:00.0')


def test_discover_link_speed_survives_suspension(host: Host, plug: Plug) -> None:
    files = {'max_link_speed': '16.0 GT/s PCIe', 'numa_node': '1'}
    plug('0000:3b:00.0', files=files)
    driver = Cards(host, {'offer_without_reset': False})
    (first,) = driver.discover()
    assert first.device is not None
    typed = {item.name: item.value for item in first.device.root.typed_attributes}
    assert typed == {'numa_node': '1', 'link_speed': '16000'}
    (host.root / 'sys/bus/pci/devices/0000:3b:00.0/max_link_speed').unlink()
    assert [*driver.discover()] == [first]
    restarted = Cards(host, {'offer_without_reset': False})
    restarted.restore_device(first.device)
    assert [*restarted.discover()] == [first]


@pytest.mark.parametrize(
    ('text', 'rate'),
    [('8 GT/s', '8000'), ('2.5 GT/s', '2500'), ('32.0 GT/s PCIe', '32000')],
)
def test_discover_link_speed_of_any_kernel(
    host: Host, plug: Plug, text: str, rate: str
) -> None:
    plug('0000:3b:00.0', files={'max_link_speed': text})
    device = _only(host).device
    assert device is not None
    typed = {item.name: item.value for item in device.root.typed_attributes}
    assert typed['link_speed'] == rate


@pytest.mark.parametrize('driver', ['pci-stub', 'vfio-pci', 'mlx5_vfio_pci', None])
def test_classify_card_kept_for_guests_is_offered(
    host: Host, plug: Plug, monkeypatch: pytest.MonkeyPatch, driver: str | None
) -> None:
    monkeypatch.setattr(Cards, 'HOST_DRIVERS', ('nvidia',))
    plug('0000:3b:00.0', driver=driver)
    assert _only(host).reason == 'whole card'


def test_discover_card_with_guest_is_unchanged(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0', link=['16.0 GT/s PCIe', '16', '16.0 GT/s PCIe', '16'])
    before = _only(host).device
    directory = plug(
        '0000:3b:00.0',
        driver='vfio-pci',
        link=['2.5 GT/s PCIe', '8', '16.0 GT/s PCIe', '16'],
    )
    assert (directory / 'driver').resolve().name == 'vfio-pci'
    assert _only(host).device == before


@pytest.mark.parametrize(
    ('fields', 'reason'),
    [
        ({'files': {'boot_vga': '1'}}, 'boot VGA of the host'),
        ({'iommu_group': None}, 'no IOMMU group: it cannot be passed through'),
        ({'reset': None}, 'the kernel cannot reset it between two guests'),
    ],
)
def test_classify_unfit_card_is_withheld(
    host: Host, plug: Plug, fields: dict[str, object], reason: str
) -> None:
    plug('0000:3b:00.0', **fields)
    _assert_withheld(_only(host), reason)


def test_classify_without_reset_option_offers_card(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0', reset=None)
    assert _only(host, offer_without_reset=True).device


@pytest.mark.parametrize('driver', ['snd_hda_intel', 'nvidia', 'nouveau'])
def test_classify_group_used_by_host_is_withheld(
    host: Host, plug: Plug, driver: str
) -> None:
    plug('0000:3b:00.0')
    plug('0000:3b:00.1', **{'class': '040300', 'driver': driver})
    result = _results(host)['0000:3b:00.0']
    _assert_withheld(
        result, f'IOMMU group 7 also contains 0000:3b:00.1 bound to {driver}'
    )


@pytest.mark.parametrize('driver', [None, 'vfio-pci', 'pci-stub', 'mlx5_vfio_pci'])
def test_classify_group_with_harmless_drivers_is_offered(
    host: Host, plug: Plug, driver: str | None
) -> None:
    plug('0000:3b:00.0')
    plug('0000:3b:00.1', ('8086', '1234'), **{'class': '020000', 'driver': driver})
    assert _only(host).device


def test_classify_bridge_in_group_is_ignored(host: Host, plug: Plug) -> None:
    plug('0000:3a:00.0', ('8086', '2030'), **{'class': '060400', 'driver': 'pcieport'})
    plug('0000:3b:00.0')
    assert _only(host).device


def test_classify_two_cards_in_group_offers_first(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0', driver='vfio-pci')
    plug('0000:3c:00.0', driver='vfio-pci')
    results = _results(host)
    assert results['0000:3b:00.0'].device
    _assert_withheld(
        results['0000:3c:00.0'], 'IOMMU group 7 goes to one guest with 0000:3b:00.0'
    )


def test_classify_companion_functions_are_described(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0')
    plug('0000:3b:00.1', **{'class': '040300', 'driver': None})
    plug('0000:3b:00.2', **{'class': '0c0330', 'driver': None})
    plug('0000:3b:00.3', **{'class': '0c8000', 'driver': None})
    results = _results(host)
    assert {address: result.reason for address, result in results.items()} == {
        '0000:3b:00.0': (
            'whole card, beside 0000:3b:00.1 (audio), beside 0000:3b:00.2 (USB), '
            'beside 0000:3b:00.3 (USB-C)'
        ),
        '0000:3b:00.1': 'audio function of 0000:3b:00.0',
        '0000:3b:00.2': 'USB function of 0000:3b:00.0',
        '0000:3b:00.3': 'USB-C function of 0000:3b:00.0',
    }
    assert [address for address, result in results.items() if result.device] == [
        '0000:3b:00.0'
    ]


def test_classify_other_functions_are_ignored(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.1', **{'class': '040300'})  # audio without a card
    plug('0000:5e:00.0', ('1002', '10de'))  # the vendor id of the driver as a device id
    assert _results(host) == {}


def test_classify_lost_card_is_failed_and_reserved(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0', lost=True)
    result = _only(host)
    assert result.device is not None
    assert result.device.health is Health.FAILED
    assert result.device.health_reason == result.reason
    assert (result.device.root.total, result.device.root.reserved) == (1, 1)


@pytest.mark.parametrize(
    ('parts', 'name'),
    [
        (('NVIDIA', '1eb8 T4-2Q'), 'CUSTOM_NVIDIA_1EB8_T4_2Q'),
        (('Präzision',), 'CUSTOM_PR_ZISION'),
        (('x' * 300,), 'CUSTOM_' + 'X' * 248),
    ],
)
def test_custom_name_replaces_invalid_characters(
    parts: tuple[str, ...], name: str
) -> None:
    assert custom_name(*parts) == name
    assert re.fullmatch('CUSTOM_[A-Z0-9_]+', custom_name(*parts))


@pytest.mark.parametrize('file', ['boot_vga', 'vendor'])
def test_discover_hung_card_hides_no_other(
    host: Host, plug: Plug, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for bus in ('3b', '5e', 'af'):
        plug(f'0000:{bus}:00.0')
    monkeypatch.setattr(HangingHost, 'blocked', {f'0000:5e:00.0/{file}'})
    results = scan(_hanging_cards(host))
    addresses = [address for address, result in results.items() if result.device]
    assert addresses == ['0000:3b:00.0', '0000:af:00.0']
    if file == 'boot_vga':  # the ids of the card could be read
        assert 'it does not answer' in results['0000:5e:00.0'].reason


def test_discover_hung_card_keeps_last_device(
    host: Host, plug: Plug, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug('0000:5e:00.0')
    driver = _hanging_cards(host)
    (before,) = driver.discover()
    monkeypatch.setattr(HangingHost, 'blocked', {'0000:5e:00.0/vendor'})
    (result,) = driver.discover()
    assert result.device is not None
    assert before.device is not None
    assert result.device.root == before.device.root
    assert result.device.health is Health.DEGRADED
    assert 'it does not answer' in result.device.health_reason


def test_discover_hung_card_keeps_device_of_earlier_agent(
    host: Host, plug: Plug, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug('0000:5e:00.0')
    (before,) = Cards(host, {'offer_without_reset': False}).discover()
    assert before.device is not None
    monkeypatch.setattr(HangingHost, 'blocked', {'0000:5e:00.0/vendor'})
    driver = _hanging_cards(host)
    driver.restore_device(before.device)
    (result,) = driver.discover()
    assert (result.ids, result.pci_class) == (before.ids, before.pci_class)
    assert result.device is not None
    assert result.device.root == before.device.root


@pytest.mark.parametrize('number', [str(2**64 - 1), '4294967295', '0x400'])
def test_discover_numa_node_out_of_range_is_unknown(
    host: Host, plug: Plug, number: str
) -> None:
    directory = plug('0000:3b:00.0')
    (directory / 'numa_node').write_text(f'{number}\n')
    device = _only(host).device
    assert device is not None
    assert device.root.total == 1
    assert 'numa_node' not in device.std_board_info
    assert device.root.typed_attributes == ()


def test_discover_undescribable_card_hides_no_other(
    host: Host, plug: Plug, monkeypatch: pytest.MonkeyPatch
) -> None:
    plug('0000:3b:00.0', ('10de', '1eb9'))
    plug('0000:5e:00.0', iommu_group=8)

    def fail(driver: PciDriver, function: PciFunction) -> str:
        if function.device == '1eb9':
            raise ValueError(function.device)
        return 'Tesla T4'

    monkeypatch.setattr(Cards, 'model_name', fail)
    results = _results(host)
    assert results['0000:3b:00.0'].reason == 'it cannot be read: ValueError'
    assert results['0000:3b:00.0'].device is None
    assert results['0000:5e:00.0'].device is not None
