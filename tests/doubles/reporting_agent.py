# SPDX-License-Identifier: Apache-2.0
"""Reporter of an agent with real components, a scripted driver and a test conductor."""

import threading
from pathlib import Path

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.arqs.reconciliation import Reconciliation
from cyborg_lite.agent.arqs.recovery import HostRecovery
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.hosts.reporting import Reporter, ReportSources
from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.telemetry import TelemetryCollector
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal
from cyborg_lite.agent.state.remembered_mark import RememberedMark
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Device
from tests.doubles.drivers import PreparingDriver, discovery_result
from tests.doubles.rebootable_host import boot
from tests.doubles.report_receiver import ReportKeeper

ADDRESS = '0000:01:00.0'
HOUR, ALWAYS_DUE = 3600.0, 0.0  # heartbeat intervals in seconds


class MeasuredDriver(PreparingDriver):
    """Driver whose devices report the given power in watts."""

    power = 50.0

    def read_usage(self, device: Device) -> Usage:
        return Usage(power=self.power)


class ReportingAgent:
    """Reporter and its components, driven by the test."""

    def __init__(
        self,
        root: Path,
        heartbeat_interval: float = HOUR,
        conductor: ReportKeeper | None = None,
    ) -> None:
        boot(root, 'boot-1')
        host = Host('compute-1', root)
        self.driver = MeasuredDriver(host, {})
        self.driver.results = [discovery_result(ADDRESS)]
        self.conductor = conductor or ReportKeeper()
        self.stopping = threading.Event()
        drivers = {'scripted': self.driver}
        self.cache, self.journal = Cache(root / 'state'), Journal(root / 'state')
        self.measurements = TelemetryCollector(drivers)
        self.discovery = Discovery(host, drivers, 60.0, removal_scans=1)
        self.discovery.scan()
        components = self.discovery, self.cache, self.journal
        self.preparation = Preparation(*components, DeviceLocks())
        recovery = HostRecovery(
            self.discovery, self.preparation, self.cache, self.journal, 0.0
        )
        self.abandoned: list[str] = []  # uuids of handles to release
        self.accepted: list[bool] = []
        self.queue_refusal: ConfigurationError | None = None
        reconciliation = Reconciliation(
            'compute-1',
            self.cache,
            lambda handles: self.abandoned.extend(item.uuid for item in handles),
            lambda _handles: None,
        )
        self.remembered = RememberedMark(root / 'state')
        self.reporter = Reporter(
            ReportSources(
                self.discovery,
                self.measurements,
                recovery,
                self.journal,
                self.remembered,
                'identity-1',
                reconciliation,
            ),
            self.conductor.connect,
            heartbeat_interval,
            self.stopping,
            self.set_accepted,
        )
        self.reporter.set_rebuilt()

    def set_accepted(self, accepted: bool) -> None:
        if self.queue_refusal is not None:
            raise self.queue_refusal
        self.accepted.append(accepted)

    def send_reports(self) -> list[str]:
        """Scan and send reports once; return the calls to the conductor."""
        before = len(self.conductor.calls)
        self.discovery.scan()
        self.reporter.send_reports()
        self.measurements.wait()
        return self.conductor.calls[before:]
