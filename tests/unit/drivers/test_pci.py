# SPDX-License-Identifier: Apache-2.0
"""Whole functions by passthrough: what may be offered, and why not."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from cyborg_lite.drivers.pci import PciDriver, custom_name, handle_info
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Finding, Health
from tests.fakes import sysfs_tree
from tests.unit.drivers.conftest import Plug


class Cards(PciDriver):
    """As short as a driver can be."""

    NAME: ClassVar[str] = 'cards'
    VENDOR: ClassVar[str] = '10de'
    VENDOR_NAME: ClassVar[str] = 'NVIDIA'
    CLASSES: ClassVar[tuple[str, ...]] = ('0300', '0302', '0380')
    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    MODELS: ClassVar[Mapping[str, str]] = {'1eb8': 'Tesla T4'}


# Any: as options are.
def _verdicts(host: Host, **options: Any) -> dict[str, Finding]:
    driver = Cards(host, {'offer_without_reset': False, **options})
    return {finding.address: finding for finding in driver.discover()}


def _only(host: Host, **options: Any) -> Finding:
    (finding,) = _verdicts(host, **options).values()
    return finding


def _withheld(finding: Finding, reason: str) -> None:
    """Known to the service, with the reason, and nothing to schedule."""
    assert finding.reason == reason
    assert finding.device is not None
    assert finding.device.health_reason == reason
    root = finding.device.root
    assert (root.resource_class, root.total, root.units) == (None, 0, ())


def test_the_console_of_the_host_is_no_accelerator(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0', files={'boot_vga': '1'})
    _withheld(_only(host), 'boot VGA of the host')


def test_a_card_that_can_be_given_away_is_offered_whole(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0')
    finding = _only(host)
    assert finding.reason == 'whole card'
    assert finding.device is not None
    device, root = finding.device, finding.device.root
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
    (unit,) = root.units
    assert unit.key == '0000:3b:00.0'
    assert unit.info == handle_info('0000:3b:00.0')


def test_a_model_that_is_not_known_by_name_is_offered_all_the_same(
    host: Host, plug: Plug
) -> None:
    plug('0000:3b:00.0', ('10de', 'ffee'))
    device = _only(host).device
    assert device is not None
    assert device.model == '10de:ffee'
    assert device.root.traits[1] == 'CUSTOM_NVIDIA_FFEE'


@pytest.mark.parametrize('pci_class', ['030000', '030200', '038000'])
def test_every_display_class_is_looked_at(
    host: Host, plug: Plug, pci_class: str
) -> None:
    plug('0000:3b:00.0', **{'class': pci_class})
    assert _only(host).device


def test_the_report_stays_the_same_while_a_guest_has_the_card(
    host: Host, plug: Plug
) -> None:
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
        ({'iommu_group': None}, 'no IOMMU group: it cannot be passed through'),
        ({'reset': None}, 'the kernel cannot reset it between two guests'),
    ],
)
def test_what_cannot_be_delivered_is_not_offered(
    host: Host, plug: Plug, fields: dict[str, object], reason: str
) -> None:
    plug('0000:3b:00.0', **fields)
    _withheld(_only(host), reason)


def test_a_card_without_reset_is_offered_where_the_operator_says_so(
    host: Host, plug: Plug
) -> None:
    plug('0000:3b:00.0', reset=None)
    assert _only(host, offer_without_reset=True).device


@pytest.mark.parametrize('driver', ['snd_hda_intel', 'nvidia', 'nouveau'])
def test_a_group_that_the_host_uses_too_is_not_offered(
    host: Host, plug: Plug, driver: str
) -> None:
    plug('0000:3b:00.0')
    plug('0000:3b:00.1', **{'class': '040300', 'driver': driver})
    finding = _verdicts(host)['0000:3b:00.0']
    _withheld(finding, f'IOMMU group 7 also holds 0000:3b:00.1 bound to {driver}')


@pytest.mark.parametrize('driver', [None, 'vfio-pci', 'pci-stub', 'mlx5_vfio_pci'])
def test_a_group_whose_others_are_idle_is_offered(
    host: Host, plug: Plug, driver: str | None
) -> None:
    plug('0000:3b:00.0')
    plug('0000:3b:00.1', ('8086', '1234'), **{'class': '020000', 'driver': driver})
    assert _only(host).device


def test_a_bridge_in_the_group_is_no_obstacle(host: Host, plug: Plug) -> None:
    plug('0000:3a:00.0', ('8086', '2030'), **{'class': '060400', 'driver': 'pcieport'})
    plug('0000:3b:00.0')
    assert _only(host).device


def test_of_two_cards_in_one_group_the_first_stands_for_it(
    host: Host, plug: Plug
) -> None:
    plug('0000:3b:00.0', driver='vfio-pci')
    plug('0000:3c:00.0', driver='vfio-pci')
    found = _verdicts(host)
    assert found['0000:3b:00.0'].device
    _withheld(
        found['0000:3c:00.0'], 'IOMMU group 7 goes to one guest with 0000:3b:00.0'
    )


def test_functions_beside_the_card_are_named_and_not_offered(
    host: Host, plug: Plug
) -> None:
    plug('0000:3b:00.0')
    plug('0000:3b:00.1', **{'class': '040300', 'driver': None})
    plug('0000:3b:00.2', **{'class': '0c0330', 'driver': None})
    plug('0000:3b:00.3', **{'class': '0c8000', 'driver': None})
    found = _verdicts(host)
    assert {address: each.reason for address, each in found.items()} == {
        '0000:3b:00.0': (
            'whole card, beside 0000:3b:00.1 (audio), beside 0000:3b:00.2 (USB), '
            'beside 0000:3b:00.3 (USB-C)'
        ),
        '0000:3b:00.1': 'audio function of 0000:3b:00.0',
        '0000:3b:00.2': 'USB function of 0000:3b:00.0',
        '0000:3b:00.3': 'USB-C function of 0000:3b:00.0',
    }
    assert [address for address, each in found.items() if each.device] == [
        '0000:3b:00.0'
    ]


def test_an_audio_function_without_a_card_is_nobodys_business(
    host: Host, plug: Plug
) -> None:
    plug('0000:3b:00.1', **{'class': '040300'})
    assert _verdicts(host) == {}


def test_other_vendors_are_nobodys_business(host: Host, plug: Plug) -> None:
    plug('0000:3b:00.0', ('1002', '10de'))  # the vendor sought, as a device id
    assert _verdicts(host) == {}


def test_a_lost_card_is_reported_as_failed_and_held_back(
    host: Host, plug: Plug
) -> None:
    plug('0000:3b:00.0', lost=True)
    finding = _only(host)
    assert finding.device is not None
    assert finding.device.health is Health.FAILED
    assert finding.device.health_reason == finding.reason
    assert (finding.device.root.total, finding.device.root.reserved) == (1, 1)


def test_a_virtual_function_is_never_a_card(host: Host) -> None:
    sysfs_tree.build('l40s-vendor-vfio', host.root)
    found = _verdicts(host)
    virtual = [each for each in found.values() if each.reason.startswith('virtual')]
    assert len(virtual) == 32
    assert not any(each.device for each in virtual)
    assert virtual[0].reason == 'virtual function of 0000:82:00.0'


@pytest.mark.parametrize(
    ('parts', 'name'),
    [
        (('NVIDIA', '1eb8'), 'CUSTOM_NVIDIA_1EB8'),
        (('ovs-offload',), 'CUSTOM_OVS_OFFLOAD'),
        (('RTX Pro 6000 Blackwell DC-3Q',), 'CUSTOM_RTX_PRO_6000_BLACKWELL_DC_3Q'),
        (('CUSTOM_ALREADY',), 'CUSTOM_ALREADY'),
        (('Präzision',), 'CUSTOM_PR_ZISION'),
        (('x' * 300,), 'CUSTOM_' + 'X' * 248),
    ],
)
def test_names_are_made_legal(parts: tuple[str, ...], name: str) -> None:
    assert custom_name(*parts) == name
    assert re.fullmatch('CUSTOM_[A-Z0-9_]+', custom_name(*parts))


def test_a_handle_is_spelled_as_nova_reads_it() -> None:
    assert handle_info('10000:0c:1f.7') == {
        'domain': '10000',
        'bus': '0c',
        'device': '1f',
        'function': '7',
    }
