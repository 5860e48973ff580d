# SPDX-License-Identifier: Apache-2.0
"""Fake agents of all hosts, without a message bus."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.devices.cleaning import CleanOrder, CleanProgress
from cyborg_lite.model.devices.devices import AllocatedHandle, ConfirmedHandle
from cyborg_lite.model.devices.modes import (
    DeviceMode,
    DeviceModes,
    ModeOrder,
    list_inventory,
)
from cyborg_lite.model.hosts.events import HostHandle
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.interface import Agents
from tests.builders.fpga_reports import holding, with_shell
from tests.builders.reports import card, with_root


class FakeAgents(Agents):
    """Agents that record their calls and answer as the test configures."""

    def __init__(self) -> None:
        self.prepared: set[str] = set()  # uuids of handles
        self.calls: list[tuple[str, str, int]] = []  # method, host, handles
        self.down_hosts: set[str] = set()  # names of hosts that do not answer
        self.refusal: CyborgError | None = None  # raised by every call
        self.cannot_load: CyborgError | None = None  # raised by ``program``
        self.forgets_to_answer = False  # after it has loaded
        self.cards: dict[str, Device] = {}  # by address: cards that can be loaded
        self.loads: list[LoadOrder] = []
        self.boot_id = ''
        self.mark = NO_MARK
        self.handles: dict[str, tuple[HostHandle, ...]] = {}  # by host: all prepared
        self.connecting = False  # True: the drivers connect all handles
        self.connected: list[AllocatedHandle] = []
        # Changes the answer of ``prepare``.
        self.change_answer: Callable[
            [Iterable[ConfirmedHandle]], Iterable[ConfirmedHandle]
        ] = tuple

    def prepare(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> tuple[ConfirmedHandle, ...]:
        self._record_call('prepare', host, handles)
        self.prepared |= {handle.uuid for handle in handles}
        confirmed = (
            handle.confirm(needs_connect=self.connecting) for handle in handles
        )
        return tuple(self.change_answer(confirmed))

    def connect(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> None:
        self._record_call('connect', host, handles)
        self.connected += handles

    def release(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> None:
        self._record_call('release', host, handles)
        self.prepared -= {handle.uuid for handle in handles}

    def list_handles(
        self, context: RequestContext, host: str
    ) -> tuple[HostHandle, ...]:
        self._record_call('list_handles', host, [])
        return self.handles.get(host, ())

    def read_mark(self, context: RequestContext, host: str) -> DatabaseMark:
        self._record_call('read_mark', host, [])
        return self.mark

    def read_boot_id(self, context: RequestContext, host: str) -> str:
        self._record_call('read_boot_id', host, [])
        return self.boot_id

    def warn(self, context: RequestContext, host: str, text: str) -> None:
        self._record_call('warn', host, [])

    def program(self, context: RequestContext, host: str, order: LoadOrder) -> Device:
        self._record_call('program', host, [])
        if self.cannot_load is not None:
            raise self.cannot_load
        self.loads.append(order)
        function = order.bitstream.function_id
        card = self.cards[order.address]
        if order.bitstream.is_shell:
            card = with_shell(card, function)
        else:
            card = holding(card, order.region_suffix, function)
        self.cards[order.address] = card
        if self.forgets_to_answer:
            raise HostAway(host=host)
        return card

    def list_modes(self, context: RequestContext, host: str) -> tuple[DeviceModes, ...]:
        return ()

    # --- calls that only the doubles derived from this one answer ---

    def scan(self, context: RequestContext, host: str) -> str:
        raise NotImplementedError

    def set_mode(self, context: RequestContext, host: str, order: ModeOrder) -> Device:
        raise NotImplementedError

    def read_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder
    ) -> CleanProgress:
        raise NotImplementedError

    def start_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder, session: str
    ) -> CleanProgress:
        raise NotImplementedError

    def abort_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder
    ) -> CleanProgress:
        raise NotImplementedError

    def _record_call(
        self, method: str, host: str, handles: Sequence[AllocatedHandle]
    ) -> None:
        self.calls.append((method, host, len(handles)))
        if host in self.down_hosts:
            raise HostAway(host=host)
        if self.refusal is not None:
            raise self.refusal


class ModeAgents(FakeAgents):
    """Agents of a card with the modes a and b."""

    BEFORE: ClassVar[Device] = card(0x3B, handles=4)
    AFTER: ClassVar[Device] = with_root(
        BEFORE, traits=('OWNER_CYBORG', 'CUSTOM_MODE_B')
    )

    def __init__(self) -> None:
        super().__init__()
        self.orders: list[ModeOrder] = []
        self.error: CyborgError | None = None  # raised by ``set_mode``

    def list_modes(self, context: RequestContext, host: str) -> tuple[DeviceModes, ...]:
        before, after = (
            list_inventory(item.root) for item in (self.BEFORE, self.AFTER)
        )
        modes = DeviceMode('a', before, is_current=True), DeviceMode('b', after)
        address = self.BEFORE.control_address
        return (DeviceModes(address, before, modes, declared='b'),)

    def set_mode(self, context: RequestContext, host: str, order: ModeOrder) -> Device:
        self.orders.append(order)
        if self.error is not None:
            raise self.error
        return self.AFTER
