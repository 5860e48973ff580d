# SPDX-License-Identifier: Apache-2.0
"""ARQs as Nova sees them, if some are companions of Xilinx FPGAs or not for a guest.

The compute manager of Nova waits for an event of each ARQ that is not listed as
resolved. Its libvirt driver attaches all listed ARQs, or none if a handle is not of
type PCI.
"""

from collections.abc import Iterator

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.arqs.arqs import State
from tests.doubles.nova_compute import USER, Compute, create_compute

GROUP = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
VM = {'resources:PGPU': '1'}
ON_HOST = {**VM, 'accel:attach_target': 'host'}
UNATTACHED = {**VM, 'accel:attach_target': 'none'}


@pytest.fixture
def compute(database: Database) -> Iterator[Compute]:
    with create_compute(database, GROUP) as created:
        yield created


def test_list_after_early_bind_sends_event_again(compute: Compute) -> None:
    first = compute.bind()
    compute.send_events(first)
    resolved = [arq.uuid for arq in compute.list_arqs() if arq.is_resolved]
    assert resolved == compute.uuids[:1]
    # Nova waits for the event of the companion ARQ.
    assert compute.send_events() == compute.uuids[1:]


def test_list_as_nova_returns_only_pci(compute: Compute) -> None:
    compute.bind()
    assert {arq.attach_handle_type for arq in compute.list_arqs()} == {'PCI'}


def test_list_twice_sends_one_event(compute: Compute) -> None:
    compute.send_events(compute.bind())
    compute.list_arqs()
    compute.list_arqs()
    assert len(compute.send_events()) == 1


def test_list_as_user_returns_companion(compute: Compute) -> None:
    compute.send_events(compute.bind())
    listed = compute.list_arqs(USER)
    assert [arq.uuid for arq in listed] == compute.uuids
    assert [arq.is_not_for_guest for arq in listed] == [False, True]
    assert compute.send_events() == []


# --- groups for the host, or for nobody ---


@pytest.mark.parametrize('only', [ON_HOST, UNATTACHED])
def test_list_only_host_arqs_returns_all(
    database: Database, only: dict[str, str]
) -> None:
    with create_compute(database, only, only) as compute:
        compute.send_events(compute.bind(handles=2))
        listed = compute.list_arqs()
        assert [arq.uuid for arq in listed] == compute.uuids
        assert {arq.state for arq in listed} == {State.BOUND}
        assert compute.send_events() == []
