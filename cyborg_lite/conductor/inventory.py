# SPDX-License-Identifier: Apache-2.0
"""What agents tell of their hosts: whole reports seldom, heartbeats always."""

from collections.abc import Callable
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.pulses import Pulses
from cyborg_lite.db import heartbeats, inventory, recovery, services
from cyborg_lite.db.engine import Database
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.inventory_diff import Changes
from cyborg_lite.model.message_rules import check_vitals
from cyborg_lite.model.report_rules import check
from cyborg_lite.model.services import Pulse, Vitals
from cyborg_lite.rpc.context import RequestContext

LOG = log.getLogger(__name__)

_NOTHING: Final = Vitals()  # of an agent that tells no more than that it lives


class Inventory:
    """The inventory of all hosts, which agents keep up to date."""

    def __init__(
        self,
        database: Database,
        wake: Callable[[], None],
        pulses: Pulses,
        heard: Callable[[], None] = lambda: None,
    ) -> None:
        """:param wake: whoever runs jobs: there is a new one
        :param pulses: who writes the heartbeats that are no news
        :param heard: who counts heartbeats
        """
        self._database = database
        self._wake = wake
        self._pulses = pulses
        self._heard = heard

    def report(self, context: RequestContext, report: HostReport) -> None:
        """Store what changed, and have Placement follow. Safe to repeat.

        :raises InvalidInput: the report cannot be stored, or concerns another host
        """
        check(report)
        host, boot_id = report.hostname, report.boot_id
        digest, known_boot = self._database.read(services.held, host)
        if (digest, known_boot) == (report.digest, boot_id):
            return
        if known_boot not in (None, boot_id):
            self._database.write(recovery.notice_boot, host, boot_id)
        changes = self._database.write(inventory.store, report, context.request_id)
        _say(report.hostname, changes)
        if changes.concern_placement:
            self._wake()

    def heartbeat(
        self, host: str, digest: str, version: str, vitals: Vitals = _NOTHING
    ) -> bool:
        """The agent lives. True: its inventory is not the one we hold.

        :raises InvalidInput: what it says cannot be stored
        """
        check_vitals(host, vitals)
        self._heard()
        pulse = Pulse(host, version, digest, vitals.boot_id)
        if not vitals.figures and self._pulses.beat(pulse):
            return False
        lacking = self._database.write(heartbeats.hear, host, version, digest, vitals)
        if not lacking:
            self._pulses.keep(pulse)
        return lacking


def _say(hostname: str, changes: Changes) -> None:
    if not changes:
        LOG.debug('Host %s reports what is known already.', hostname)
        return
    LOG.info(
        'Host %s: devices %s; deployables %s; attach handles %s; attributes %s.',
        hostname,
        changes.devices,
        changes.parts,
        changes.units,
        changes.attributes,
    )
