# SPDX-License-Identifier: Apache-2.0
"""The agents of all hosts, without a bus: they prepare, refuse, or do not answer."""

from collections.abc import Sequence

from cyborg_lite.exceptions import CyborgError, HostAway
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Device
from cyborg_lite.rpc.agent import AgentAPI
from cyborg_lite.rpc.context import RequestContext
from tests.fakes.fpga import holding, with_shell


class FakeAgents(AgentAPI):
    """What hosts would do with what they are told."""

    def __init__(self) -> None:
        self.prepared: set[str] = set()  # uuids of handles
        self.calls: list[tuple[str, str, int]] = []  # method, host, handles
        self.away: set[str] = set()  # hosts
        self.refusal: CyborgError | None = None  # what every call raises
        self.cannot_load: CyborgError | None = None  # what ``program`` raises
        self.forgets_to_answer = False  # after it has loaded
        self.cards: dict[str, Device] = {}  # by address: those that can be loaded
        self.loads: list[LoadOrder] = []

    def prepare(
        self, context: RequestContext, host: str, handles: Sequence[HeldHandle]
    ) -> None:
        self._told('prepare', host, handles)
        self.prepared |= {handle.uuid for handle in handles}

    def release(
        self, context: RequestContext, host: str, handles: Sequence[HeldHandle]
    ) -> None:
        self._told('release', host, handles)
        self.prepared -= {handle.uuid for handle in handles}

    def program(self, context: RequestContext, host: str, order: LoadOrder) -> Device:
        self._told('program', host, [])
        if self.cannot_load is not None:
            raise self.cannot_load
        self.loads.append(order)
        function = order.bitstream.function_id
        card = self.cards[order.address]
        if order.bitstream.is_shell:
            card = with_shell(card, function)
        else:
            card = holding(card, order.part, function)
        self.cards[order.address] = card
        if self.forgets_to_answer:
            raise HostAway(host=host)
        return card

    def _told(self, method: str, host: str, handles: Sequence[HeldHandle]) -> None:
        self.calls.append((method, host, len(handles)))
        if host in self.away:
            raise HostAway(host=host)
        if self.refusal is not None:
            raise self.refusal
