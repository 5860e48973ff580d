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

_INSIDE = {
    FaultKind.CLOCK: 'clock',
    FaultKind.REFUSE_COMMITS: 'refusals',
    FaultKind.READ_ONLY: 'read_only',
    FaultKind.DUPLICATE: 'duplicates',
    FaultKind.DELAY: 'delay',
    FaultKind.FULL_DISK: 'full_disk',
}
"""Names of faults inside a daemon, as in its file."""

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
        self._inside: dict[str, dict[str, float]] = {}

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
            case FaultKind.CUT | FaultKind.BLACKHOLE | FaultKind.LOSE:
                cluster.set_link(daemon, fault.peer, _MODES[fault.kind])
            case _:
                self._change_inside(daemon, _INSIDE[fault.kind], fault.amount)

    def _end(self, fault: Fault) -> None:
        cluster, daemon = self._cluster, fault.daemon
        match fault.kind:
            case FaultKind.KILL:
                cluster.launch(daemon)
            case FaultKind.STOP:
                cluster.daemons[daemon].signal(signal.SIGCONT)
            case FaultKind.TWIN:
                self._twins.pop(daemon).kill()
            case FaultKind.CUT | FaultKind.BLACKHOLE | FaultKind.LOSE:
                cluster.set_link(daemon, fault.peer, Mode.PASS)
            case _:
                self._change_inside(daemon, _INSIDE[fault.kind], 0.0)

    def _change_inside(self, daemon: str, name: str, amount: float) -> None:
        values = self._inside.setdefault(daemon, {})
        values[name] = amount
        self._cluster.set_faults(daemon, values)
