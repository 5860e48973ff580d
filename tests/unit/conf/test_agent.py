# SPDX-License-Identifier: Apache-2.0
"""Defaults of the agent that must fit those of the conductor and of systemd."""

import re
from pathlib import Path

from cyborg_lite import conf as configuration

_UNIT = Path(__file__).parents[3] / 'etc/systemd/cyborg-lite-agent.service'


def test_agent_down_after_allows_three_missed_heartbeats() -> None:
    conf = configuration.parse([], 'prog', [])
    assert conf.conductor.agent_down_after > 3 * conf.agent.heartbeat_interval


def test_recovery_patience_ends_before_systemd_timeout() -> None:
    conf = configuration.parse([], 'prog', [])
    (timeout,) = re.findall(r'^TimeoutStartSec=(\d+)$', _UNIT.read_text(), re.MULTILINE)
    assert conf.agent.recovery_patience < int(timeout)


def test_largest_image_equals_that_of_conductor() -> None:
    conf = configuration.parse([], 'prog', [])
    assert conf.agent.largest_image == conf.conductor.largest_image
    assert conf.agent.largest_image <= conf.agent.image_cache_size
