# SPDX-License-Identifier: Apache-2.0
"""Tests of API and conductor in one process."""

import http.client
import json
from collections.abc import Callable
from contextlib import closing
from unittest import mock

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.daemons import controller
from cyborg_lite.cmd.runner import daemon
from devstack.launcher.configuration import free_port
from tests.support.api.conversation import ADMIN

# No message of the test reaches this bus: the API must not use it.
_LINES = (
    '[DEFAULT]\ntransport_url = fake://\nmessage_signatures = off\n'
    '[placement]\nendpoint_override = http://127.0.0.1:1\n'
    '[api]\nauth_strategy = noauth\nhost = 127.0.0.1\n'
)

Parse = Callable[[str], cfg.ConfigOpts]


@pytest.fixture
def parse(write_config: Callable[..., list[str]]) -> Parse:
    return lambda lines: configuration.parse(
        write_config(_LINES + lines), controller.BINARY
    )


def test_api_calls_conductor_of_its_process(parse: Parse) -> None:
    port = free_port()
    group = controller.build(parse(f'port = {port}\n'))
    group.start()
    try:
        with closing(http.client.HTTPConnection('127.0.0.1', port)) as connection:
            connection.request('GET', '/v2/devices', headers=ADMIN)
            response = connection.getresponse()
            assert json.loads(response.read())['devices'] == []
    finally:
        group.stop()
        group.wait()


def test_main_runs_both_parts_in_each_worker(
    write_config: Callable[..., list[str]],
) -> None:
    with mock.patch.object(daemon, 'run', return_value=0) as run:
        controller.main(write_config(_LINES + 'workers = 3\n'))
    conf, identity, _build = run.call_args.args
    assert (identity.workers, conf.conductor.workers) == (3, 3)
