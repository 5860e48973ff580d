# SPDX-License-Identifier: Apache-2.0
"""Sizes of the messages of agents on RabbitMQ, in bytes."""

import json
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from oslo_messaging._drivers import amqp, common

from cyborg_lite.model.hosts.services import Heartbeat, HeartbeatDetails
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.inventory.report_changes import diff_reports
from cyborg_lite.rpc.client import build_conductor
from cyborg_lite.rpc.context import RequestContext, bare_context, daemon_context
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.security.keys import OwnKeys, Peer, Role, derive_key
from cyborg_lite.rpc.security.signed_calls import SignedCaller
from cyborg_lite.rpc.security.signing import Signer
from cyborg_lite.rpc.transport import Message
from tests.builders.reports import host

AGENT = Peer(Role.AGENT, 'compute-0001')
REPORT = replace(host(64, 16), identity=str(uuid4()), number=1)


class MeasuringClient:
    """RPC client that computes the size of each message, as the driver sends it."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def call(self, context: dict[str, Any], method: str, **arguments: Any) -> object:
        message = {
            'method': method,
            'args': arguments,
            'version': '1.0',
            '_msg_id': uuid4().hex,
            '_reply_q': f'reply_{uuid4().hex}',
            '_timeout': None,
            '_unique_id': uuid4().hex,
        }
        amqp.pack_context(message, context)
        self.sizes.append(len(json.dumps(common.serialize_msg(message))))
        return {'report_changes': 1, 'repeat': {}}.get(method, True)


class MeasuringBus:
    """Bus for signed messages."""

    def __init__(self) -> None:
        keys = OwnKeys(AGENT, (derive_key('s' * 32, AGENT),))
        signer = Signer(AGENT, keys, is_required=False)  # the replies are not signed
        self.client = MeasuringClient()
        self._caller = SignedCaller(signer, self.client, Peer(Role.CONDUCTOR))

    def send(self, context: RequestContext, message: Message) -> Any:
        return self._caller.call(context, message.method, **message.arguments)


@pytest.fixture
def bus() -> MeasuringBus:
    return MeasuringBus()


@pytest.fixture
def conductor(bus: MeasuringBus) -> Conductor:
    return build_conductor(bus.send)


def change_handle(report: HostReport) -> HostReport:
    """Return the report with one attach handle that is in use."""
    device = report.devices[5]
    handles = (replace(device.root.handles[0], in_use=True), *device.root.handles[1:])
    changed = replace(device, root=replace(device.root, handles=handles))
    devices = (*report.devices[:5], changed, *report.devices[6:])
    return replace(report, devices=devices, number=2)


def test_report_changes_of_64_devices(bus: MeasuringBus, conductor: Conductor) -> None:
    host, changed = REPORT.hostname, change_handle(REPORT)
    for changes in (diff_reports(REPORT), diff_reports(changed, REPORT)):
        conductor.report_changes(daemon_context(), host, changes)
    first, second = bus.client.sizes
    assert first <= 60_000
    assert second <= 3_000


def test_heartbeat_that_repeats_the_last_one(
    bus: MeasuringBus, conductor: Conductor
) -> None:
    host, boot_id, identity = 'compute-0001', str(uuid4()), str(uuid4())
    details = HeartbeatDetails(boot_id, identity=identity)
    conductor.heartbeat(daemon_context(), host, REPORT.digest, '1.0.0', details)
    token = Heartbeat(host, '1.0.0', REPORT.digest, boot_id, identity).token
    conductor.repeat(bare_context(), host, token)
    full, short = bus.client.sizes
    assert full > 700
    assert short <= 400
