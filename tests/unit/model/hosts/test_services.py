# SPDX-License-Identifier: Apache-2.0
"""Tests of heartbeats and daemons in messages."""

from datetime import UTC, datetime

from cyborg_lite import codec
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.services import (
    CONDUCTOR,
    HeartbeatDetails,
    Service,
    ServiceState,
)

STARTED_AT = datetime(2026, 11, 21, tzinfo=UTC)


def test_heartbeat_details_survive_transfer() -> None:
    details = HeartbeatDetails('boot-1', {'0000:3b:00.0': Usage(power=5.0)})
    message = codec.dump(details)
    assert codec.load(HeartbeatDetails, message) == details


def test_heartbeat_details_of_empty_message_are_defaults() -> None:
    assert codec.load(HeartbeatDetails, {}) == HeartbeatDetails()


def test_service_survives_transfer() -> None:
    service = Service(
        'u', CONDUCTOR, 'node-1', '1.0', ServiceState.DOWN, STARTED_AT, STARTED_AT
    )
    assert codec.load(Service, codec.dump(service)) == service
    assert (service.digest, service.boot_id) == (None, None)
