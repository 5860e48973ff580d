# SPDX-License-Identifier: Apache-2.0
"""Where virtual functions come to lie, and whose they are to take away."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.drivers.virtual_functions import VirtualFunctions, planned
from cyborg_lite.exceptions import DriverError
from tests.fakes import sysfs_tree
from tests.fakes.kernel import FakeKernel
from tests.unit.drivers.conftest import Plug

_CARD = '0000:c3:00.0'
_FIRST = '0000:c3:00.4'


class FakeSwitch:
    """Has the kernel of the tests make and remove them."""

    def __init__(self, kernel: FakeKernel) -> None:
        self.kernel = kernel
        self.turned: list[str] = []

    def on(self, card: PciFunction) -> None:
        self.turned.append('on')
        self.kernel.run(self.kernel.root, 'sriov-manage', ['-e', card.address])

    def off(self, card: PciFunction) -> None:
        self.turned.append('off')
        self.kernel.disable(card.address)


@pytest.fixture
def switch(tmp_path: Path) -> FakeSwitch:
    return FakeSwitch(FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=2))


@pytest.mark.parametrize(
    'name', ['a100-sriov-mig', 'l40s-vendor-vfio', 'generic-pci', 'qat-x710']
)
def test_they_lie_where_they_were_foretold(name: str, host: Host) -> None:
    """Over the end of a bus too."""
    built = sysfs_tree.build(name, host.root)
    cards = [PciFunction(host, address) for address in built.functions]
    with_virtual = [card for card in cards if card.virtfns]
    assert with_virtual
    for card in with_virtual:
        assert planned(card, len(card.virtfns)) == card.virtfns


def test_a_card_that_cannot_have_any_foretells_none(host: Host, plug: Plug) -> None:
    plug(_CARD)
    assert planned(PciFunction(host, _CARD), 4) == ()


def test_they_are_made_once(host: Host, switch: FakeSwitch) -> None:
    card, virtual = PciFunction(host, _CARD), VirtualFunctions(host, switch)
    virtual.make(card, _FIRST)
    virtual.make(card, _FIRST)
    assert switch.turned == ['on']


def test_one_that_does_not_come_is_told(host: Host, switch: FakeSwitch) -> None:
    virtual = VirtualFunctions(host, switch)
    with pytest.raises(DriverError, match='has 2 virtual functions, and 0000:c4'):
        virtual.make(PciFunction(host, _CARD), '0000:c4:00.0')


def test_the_next_process_knows_whose_they_are(host: Host, switch: FakeSwitch) -> None:
    card = PciFunction(host, _CARD)
    VirtualFunctions(host, switch).make(card, _FIRST)
    VirtualFunctions(host, switch).unmake(card)
    VirtualFunctions(host, switch).unmake(card)
    assert switch.turned == ['on', 'off']


def test_those_of_others_are_not_taken_away(host: Host, switch: FakeSwitch) -> None:
    switch.kernel.run(host.root, 'sriov-manage', ['-e', _CARD])
    virtual = VirtualFunctions(host, switch)
    virtual.make(PciFunction(host, _CARD), _FIRST)
    virtual.unmake(PciFunction(host, _CARD))
    assert switch.turned == []


def test_after_a_reboot_what_others_made_is_theirs(
    host: Host, switch: FakeSwitch
) -> None:
    VirtualFunctions(host, switch).make(PciFunction(host, _CARD), _FIRST)
    switch.kernel.reboot()
    switch.kernel.run(host.root, 'sriov-manage', ['-e', _CARD])
    VirtualFunctions(host, switch).unmake(PciFunction(host, _CARD))
    assert switch.turned == ['on']


def test_where_nothing_can_be_written_down_they_are_made_all_the_same(
    host: Host, switch: FakeSwitch
) -> None:
    (host.root / 'run').write_text('no directory')
    virtual = VirtualFunctions(host, switch)
    virtual.make(PciFunction(host, _CARD), _FIRST)
    virtual.unmake(PciFunction(host, _CARD))
    assert switch.turned == ['on', 'off']
