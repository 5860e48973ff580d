# SPDX-License-Identifier: Apache-2.0
"""Tests of the connection of the API to the message bus."""

from datetime import UTC, datetime
from unittest import mock

from cyborg_lite.cmd.daemons import api_application
from cyborg_lite.model.hosts.services import CONDUCTOR, Service, ServiceState
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.version import VERSION


def test_read_versions_asks_for_running_conductors() -> None:
    conductor = mock.create_autospec(Conductor, instance=True)
    moment = datetime(2026, 11, 22, tzinfo=UTC)
    conductor.list_services.return_value = [
        Service('u', CONDUCTOR, 'ctl', text, ServiceState.UP, moment, moment)
        for text in ('0.1.0', VERSION)
    ]
    assert list(api_application._read_versions(conductor)) == [(CONDUCTOR, '0.1.0')]
    _context, query = conductor.list_services.call_args.args
    assert query.filters == {'binary': (CONDUCTOR,), 'state': (ServiceState.UP,)}
