# SPDX-License-Identifier: Apache-2.0
"""Injects the faults of a schedule, and ends all of them."""

import signal
import threading
import time
from collections.abc import Callable, Sequence

from devstack.launcher.processes import Child
from tests.chaos.history.cluster import Cluster
from tests.chaos.history.schedule import Fault, FaultKind
from tests.chaos.history.tcp_proxy import Mode

_MODES = {
    FaultKind.CUT: Mode.CUT,
    FaultKind.BLACKHOLE: Mode.BLACKHOLE,
    FaultKind.LOSE: Mode.LOSE,
}


class FaultInjector:
    """Begins and ends faults in the calling thread."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._twins: dict[str, Child] = {}
        self._inside: dict[str, dict[str, object]] = {}

    def run(self, faults: Sequence[Fault], seconds: float) -> None:
        """Inject faults for some seconds; afterwards none is left."""
        began = time.monotonic()
        pause = threading.Event()
        changes: list[tuple[float, Callable[[Fault], None], Fault]] = []
        for fault in faults:
            changes.append((fault.start, self._begin, fault))
            changes.append((min(fault.end, seconds), self._end, fault))
        for moment, change, fault in sorted(changes, key=lambda change: change[0]):
            pause.wait(max(0.0, began + moment - time.monotonic()))
            change(fault)
        pause.wait(max(0.0, began + seconds - time.monotonic()))

    def _begin(self, fault: Fault) -> None:
        cluster, daemon = self._cluster, fault.daemon
        match fault.kind:
            case FaultKind.KILL:
                cluster.daemons[daemon].kill()
            case FaultKind.STOP:
                cluster.daemons[daemon].signal(signal.SIGSTOP)
            case FaultKind.TWIN:
                self._twins[daemon] = cluster.launch_twin(daemon)
            case FaultKind.CLOCK:
                self._change_inside(daemon, clock=fault.amount)
            case FaultKind.REFUSE_COMMITS:
                self._change_inside(daemon, refusals=fault.amount)
            case FaultKind.READ_ONLY:
                self._change_inside(daemon, is_read_only=True)
            case _:
                cluster.set_link(daemon, fault.peer, _MODES[fault.kind])

    def _end(self, fault: Fault) -> None:
        cluster, daemon = self._cluster, fault.daemon
        match fault.kind:
            case FaultKind.KILL:
                cluster.launch(daemon)
            case FaultKind.STOP:
                cluster.daemons[daemon].signal(signal.SIGCONT)
            case FaultKind.TWIN:
                self._twins.pop(daemon).kill()
            case FaultKind.CLOCK:
                self._change_inside(daemon, clock=0.0)
            case FaultKind.REFUSE_COMMITS:
                self._change_inside(daemon, refusals=0.0)
            case FaultKind.READ_ONLY:
                self._change_inside(daemon, is_read_only=False)
            case _:
                cluster.set_link(daemon, fault.peer, Mode.PASS)

    def _change_inside(self, daemon: str, **faults: object) -> None:
        values = self._inside.setdefault(daemon, {})
        values |= faults
        self._cluster.set_faults(daemon, **values)
