# SPDX-License-Identifier: Apache-2.0
"""Tests of the deployables of FPGA cards, without the files of a vendor."""

from dataclasses import replace
from typing import Final

import pytest

from cyborg_lite.drivers.fpga.driver import (
    FpgaCard,
    FpgaDriver,
    FpgaRegion,
    restore_card,
)
from cyborg_lite.drivers.fpga.inspur import InspurFpga
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.inventory.host_report import Device, Health
from tests.hosts.sysfs_device import Plug

_CARD: Final = '0000:01:00.0'
_FIRST, _SECOND = '0000:01:00.1', '0000:01:00.2'
_CLASS: Final = {'class': '120000'}


class _Driver(FpgaDriver):
    """Driver of a card that a test describes."""

    NAME = 'test_fpga_driver'
    VENDOR = '1d55'
    VENDOR_NAME = 'ACME'
    card: FpgaCard

    def read_card(self, function: PciFunction) -> FpgaCard:
        return replace(self.card, function=function)

    def region_traits(self, region: FpgaRegion) -> tuple[str, ...]:
        return (f'CUSTOM_{region.function_id}',) if region.function_id else ()


@pytest.fixture
def function(host: Host, plug: Plug) -> PciFunction:
    """Return a card with two virtual functions."""
    directory = plug(_CARD, ('1d55', '0001'), **_CLASS)
    for number, address in enumerate((_FIRST, _SECOND)):
        virtual = plug(address, ('1d55', '0002'), iommu_group=80 + number, **_CLASS)
        (directory / f'virtfn{number}').symlink_to(virtual)
        (virtual / 'physfn').symlink_to(directory)
    return PciFunction(host, _CARD)


@pytest.fixture
def driver(host: Host) -> _Driver:
    return _Driver(host, {'offer_without_reset': False})


def _device(driver: _Driver, card: FpgaCard) -> Device:
    driver.card = card
    device = driver.classify_card(card.function).device
    assert device is not None
    return device


def _separate(function: PciFunction) -> FpgaCard:
    return FpgaCard(
        function,
        None,
        (
            FpgaRegion('region0', 'aa', 'F1', vf_address=_FIRST),
            FpgaRegion('region1', 'bb', vf_address=_SECOND),
        ),
        {bitstreams.VENDOR: '1d55 acme', bitstreams.VERSION: ''},
    )


@pytest.mark.parametrize(
    ('addresses', 'expected'),
    [
        ((), (_CARD,)),
        ((None,), (_CARD,)),
        ((_FIRST,), (_CARD,)),  # one region: the card is given as one function
        ((None, None), (_CARD,)),
        ((_FIRST, _SECOND), (_FIRST, _SECOND)),
        ((_FIRST, None), (_FIRST,)),
    ],
)
def test_guest_addresses_are_card_or_regions(
    addresses: tuple[str | None, ...], expected: tuple[str, ...], function: PciFunction
) -> None:
    regions = tuple(
        FpgaRegion(f'region{number}', vf_address=address)
        for number, address in enumerate(addresses)
    )
    assert FpgaCard(function, _CARD, regions).guest_addresses == expected


def test_classify_separate_regions_schedules_children(
    driver: _Driver, function: PciFunction
) -> None:
    root = _device(driver, _separate(function)).root
    assert (root.resource_class, root.handles) == (None, ())
    first, second = root.children
    assert [child.handles[0].key for child in root.children] == [_FIRST, _SECOND]
    assert 'CUSTOM_F1' in first.traits
    assert bitstreams.FUNCTION not in second.attributes
    (virtual,) = second.children
    assert virtual.name == f'{root.name}_region1_vf1'
    assert virtual.attributes == {'address': _SECOND}


def test_classify_region_fault_reserves_region_only(
    driver: _Driver, function: PciFunction
) -> None:
    card = _separate(function)
    broken = replace(card.regions[1], fault='half loaded')
    device = _device(driver, replace(card, regions=(card.regions[0], broken)))
    assert (device.health, device.health_reason) == (Health.DEGRADED, 'half loaded')
    assert [child.reserved for child in device.root.children] == [0, 1]


def test_classify_card_fault_outweighs_region_fault(
    driver: _Driver, function: PciFunction
) -> None:
    regions = tuple(
        replace(region, fault='half loaded') for region in _separate(function).regions
    )
    card = replace(_separate(function), regions=regions, fault='no driver')
    device = _device(driver, card)
    assert (device.health, device.health_reason) == (Health.FAILED, 'no driver')
    assert [child.reserved for child in device.root.children] == [1, 1]


def test_classify_vf_without_reset_withholds_card(
    driver: _Driver, host: Host, function: PciFunction
) -> None:
    (host.root / PciFunction(host, _SECOND).path('reset')).unlink()
    (host.root / PciFunction(host, _SECOND).path('reset_method')).unlink()
    device = _device(driver, _separate(function))
    assert (device.root.handles, device.root.children) == ((), ())
    assert 'cannot reset' in device.health_reason


def test_restore_card_returns_what_deployables_contain(
    driver: _Driver, function: PciFunction
) -> None:
    card = _separate(function)
    expected = replace(
        card,
        regions=tuple(replace(region, vf_address=None) for region in card.regions),
    )
    assert restore_card(function, _device(driver, card).root) == expected


# --- a card of one handle ---


def test_discover_card_has_one_handle(host: Host, plug: Plug) -> None:
    plug('0000:01:00.0', ('1bd4', 'a115'), **{'class': '120000'})
    driver = InspurFpga(host, {'offer_without_reset': False})
    (result,) = driver.discover()
    assert result.device is not None
    root = result.device.root
    assert result.device.driver == 'INSPUR'
    assert set(root.traits) == {
        'OWNER_CYBORG',
        'CUSTOM_FPGA_INSPUR',
        'CUSTOM_FPGA_PRODUCT_ID_A115',
    }
    assert (root.resource_class, root.total, len(root.handles)) == ('FPGA', 1, 1)
    assert not root.handles[0].needs_host
