# SPDX-License-Identifier: Apache-2.0
"""Tests of the addresses, creation and removal of virtual functions."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.virtual_functions import (
    VirtualFunctions,
    list_vf_addresses,
)
from cyborg_lite.errors.drivers import DeviceBusy, DeviceHangs, DriverError
from tests.hosts.kernel import FakeKernel
from tests.hosts.sysfs_device import Plug

_CARD = '0000:c3:00.0'
_FIRST = '0000:c3:00.4'


class FakeSwitch:
    """Switch that uses the emulated kernel and records its calls."""

    def __init__(self, kernel: FakeKernel) -> None:
        self.kernel = kernel
        self.calls: list[str] = []

    def enable(self, card: PciFunction) -> None:
        self.calls.append('enable')
        self.kernel.run(self.kernel.root, 'sriov-manage', ['-e', card.address])

    def disable(self, card: PciFunction) -> None:
        self.calls.append('disable')
        self.kernel.disable(card.address)


@pytest.fixture
def switch(tmp_path: Path) -> FakeSwitch:
    return FakeSwitch(FakeKernel('l40s-vendor-vfio', tmp_path, most_virtual=2))


def test_list_vf_addresses_without_sriov_is_empty(host: Host, plug: Plug) -> None:
    plug(_CARD)
    assert list_vf_addresses(PciFunction(host, _CARD), 4) == ()


def test_list_vf_addresses_of_single_vf_needs_no_stride(host: Host, plug: Plug) -> None:
    plug(_CARD, files={'sriov_offset': '4', 'sriov_stride': '0'})
    card = PciFunction(host, _CARD)
    assert list_vf_addresses(card, 1) == (_FIRST,)
    assert list_vf_addresses(card, 2) == ()


def test_create_fewer_than_requested_disables_them(
    host: Host, switch: FakeSwitch
) -> None:
    virtual, card = VirtualFunctions(host, switch), PciFunction(host, _CARD)
    with pytest.raises(DriverError):
        virtual.create(card, '0000:c4:00.0')
    assert PciFunction(host, _CARD).virtfns == ()
    virtual.remove(card)
    assert switch.calls == ['enable', 'disable']


def test_create_fewer_than_requested_keeps_foreign_vfs(
    host: Host, switch: FakeSwitch
) -> None:
    switch.kernel.run(host.root, 'sriov-manage', ['-e', _CARD])
    virtual = VirtualFunctions(host, switch)
    with pytest.raises(DriverError):
        virtual.create(PciFunction(host, _CARD), '0000:c4:00.0')
    assert switch.calls == ['enable']


def test_create_with_failed_removal_is_removed_later(
    host: Host, switch: FakeSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = Mock(side_effect=DeviceBusy(address=_CARD, reason='refused'))
    virtual, card = VirtualFunctions(host, switch), PciFunction(host, _CARD)
    with monkeypatch.context() as patch:
        patch.setattr(switch, 'disable', refuse)
        with pytest.raises(DriverError, match='has 2 virtual functions, but none'):
            virtual.create(card, '0000:c4:00.0')
    virtual.remove(card)
    assert switch.calls == ['enable', 'disable']


@pytest.mark.parametrize(
    ('error', 'calls'),
    [
        (DeviceBusy(address=_CARD, reason='refused'), []),
        # The change may still succeed.
        (DeviceHangs(address=_CARD, what='write', seconds=1), ['disable']),
    ],
)
def test_remove_after_failed_create_disables_own_vfs_only(
    host: Host,
    switch: FakeSwitch,
    monkeypatch: pytest.MonkeyPatch,
    error: DriverError,
    calls: list[str],
) -> None:
    virtual = VirtualFunctions(host, switch)
    monkeypatch.setattr(switch, 'enable', Mock(side_effect=error))
    with pytest.raises(type(error)):
        virtual.create(PciFunction(host, _CARD), _FIRST)
    switch.kernel.run(host.root, 'sriov-manage', ['-e', _CARD])
    virtual.remove(PciFunction(host, _CARD))
    assert switch.calls == calls


def test_remove_foreign_vfs_after_reboot_is_ignored(
    host: Host, switch: FakeSwitch
) -> None:
    VirtualFunctions(host, switch).create(PciFunction(host, _CARD), _FIRST)
    switch.kernel.reboot()
    switch.kernel.run(host.root, 'sriov-manage', ['-e', _CARD])
    VirtualFunctions(host, switch).remove(PciFunction(host, _CARD))
    assert switch.calls == ['enable']


def test_create_without_mark_file_succeeds(host: Host, switch: FakeSwitch) -> None:
    (host.root / 'run').write_text('no directory')
    virtual = VirtualFunctions(host, switch)
    virtual.create(PciFunction(host, _CARD), _FIRST)
    virtual.remove(PciFunction(host, _CARD))
    assert switch.calls == ['enable', 'disable']


@pytest.mark.parametrize(
    ('name', 'number'),
    [('sriov_offset', 2**64 - 1), ('sriov_offset', -4), ('sriov_stride', 2**64 - 1)],
)
def test_list_vf_addresses_impossible_number_is_empty(
    switch: FakeSwitch, name: str, number: int
) -> None:
    host = Host('compute-1', switch.kernel.root)
    card = PciFunction(host, _CARD)
    assert list_vf_addresses(card, 2**64 - 1) == ()
    (host.root / card.path(name)).write_text(f'{number}\n')
    assert list_vf_addresses(card, 2) == ()
