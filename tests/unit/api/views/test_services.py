# SPDX-License-Identifier: Apache-2.0
"""Tests of daemons in responses."""

from datetime import UTC, datetime

from wsme import types

from cyborg_lite.api.views.services import ServiceList
from cyborg_lite.model.services import AGENT, Service, ServiceState
from tests.builders.api_calls import render

STARTED_AT = datetime(2026, 11, 21, tzinfo=UTC)
SERVICE = Service(
    uuid='5c9a477a-d3d4-426a-9e9c-b2660917780e',
    binary=AGENT,
    host='compute-1',
    version='1.0.0',
    state=ServiceState.DOWN,
    started_at=STARTED_AT,
    heartbeat_at=STARTED_AT,
    digest='abc',
    boot_id='boot-1',
)


def test_service_view_hides_digest_and_boot_id() -> None:
    body = render(ServiceList.build([SERVICE], types.Unset))
    assert body == {
        'services': [
            {
                'uuid': SERVICE.uuid,
                'binary': 'cyborg-lite-agent',
                'host': 'compute-1',
                'state': 'down',
                'version': '1.0.0',
                'started_at': '2026-11-21T00:00:00+00:00',
                'heartbeat_at': '2026-11-21T00:00:00+00:00',
            }
        ]
    }
