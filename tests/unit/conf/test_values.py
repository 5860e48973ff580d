# SPDX-License-Identifier: Apache-2.0
"""Defaults of options that depend on each other, and values that stop the start."""

import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.conf import nova

Parse = Callable[..., cfg.ConfigOpts]

_UNIT: Final = Path(__file__).parents[3] / 'etc/systemd/cyborg-lite-agent.service'
_ARQ_BINDING_TIMEOUT: Final = 300  # seconds; the default of [arqs] in nova.conf


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    """Return a function that parses the lines of a configuration file."""

    def parse_lines(*lines: str) -> cfg.ConfigOpts:
        file = tmp_path / 'cyborg-lite.conf'
        file.write_text('\n'.join(lines))
        return configuration.parse([], 'prog', [str(file)])

    return parse_lines


@pytest.mark.parametrize(
    ('section', 'line'),
    [
        ('api', 'auth_strategy = none'),
        ('api', 'public_endpoint = ftp://cloud.example'),
        ('api', 'threads = 0'),
        ('api', 'max_name_length = 256'),  # the width of the column
        ('api', 'max_accel_value_length = 35'),  # shorter than a uuid
        ('api', 'port = 65536'),
        ('api', 'max_connections = 0'),
        ('conductor', 'workers = 0'),
        ('nova', 'attaches_mdev = maybe'),
        ('notifications', 'topic = a b'),
        ('notifications', 'topic ='),
        ('notifications', 'max_backlog = 1'),
        ('upgrade_levels', 'agent = 1'),
        ('upgrade_levels', 'agent = wallaby'),
    ],
)
def test_invalid_value_stops_start_with_option(
    parse: Parse, section: str, line: str
) -> None:
    with pytest.raises(SystemExit, match=line.split()[0]):
        parse(f'[{section}]', line)


@pytest.mark.parametrize('level', ['auto', '1.2', '1.13'])
def test_level_is_auto_or_version(parse: Parse, level: str) -> None:
    levels = parse('[upgrade_levels]', f'conductor = {level}').upgrade_levels
    assert (levels.conductor, levels.agent) == (level, 'auto')


@pytest.mark.parametrize(
    ('line', 'attaches'),
    [
        ('', None),
        ('attaches_mdev = auto', None),
        ('attaches_mdev = true', True),
        ('attaches_mdev = false', False),
    ],
)
def test_attaches_mdev_has_three_values(
    parse: Parse, line: str, attaches: bool | None
) -> None:
    value = parse('[nova]', line).nova.attaches_mdev
    assert nova.ATTACHES_MDEV[str(value)] is attaches


def test_defaults_are_safe(parse: Parse) -> None:
    conf = parse()
    assert conf.api.auth_strategy == 'keystone'
    assert conf.api.hold_power_on
    assert conf.api.refuse_failed_binds
    assert not conf.api.refuse_impossible_profiles
    assert conf.nova.attaches_unmanaged is False
    assert conf.limits.enabled is conf.notifications.enabled is False
    assert parse('[limits]', 'enabled = true').limits.enabled is True
    assert conf.database.mysql_wsrep_sync_wait is None


def test_defaults_of_agent_fit_conductor_and_systemd(parse: Parse) -> None:
    agent, conductor = parse().agent, parse().conductor
    # Three heartbeats may be missed.
    assert conductor.agent_down_after > 3 * agent.heartbeat_interval
    (timeout,) = re.findall(r'^TimeoutStartSec=(\d+)$', _UNIT.read_text(), re.MULTILINE)
    assert agent.recovery_patience < int(timeout)
    assert agent.largest_image == conductor.largest_image
    assert agent.largest_image <= agent.image_cache_size


def test_defaults_of_conductor_fit_nova(parse: Parse) -> None:
    conductor = parse().conductor
    assert conductor.bind_deadline + conductor.job_lease < _ARQ_BINDING_TIMEOUT
    assert conductor.event_deadline <= _ARQ_BINDING_TIMEOUT
    assert conductor.load_timeout < conductor.bind_deadline
    assert conductor.audit_interval > 0
    assert (conductor.reap_orphans, conductor.orphan_grace) == (True, 3600)


def test_connection_is_not_logged(
    parse: Parse, caplog: pytest.LogCaptureFixture
) -> None:
    conf = parse('[database]', 'connection = mysql://u:hunter2@db/x')
    logger = logging.getLogger('test')
    with caplog.at_level(logging.INFO, logger='test'):
        conf.log_opt_values(logger, logging.INFO)
    assert 'database.connection' in caplog.text
    assert 'hunter2' not in caplog.text


def test_sample_has_options_of_authentication_plugins() -> None:
    names = {option.name.replace('-', '_') for option in nova.SAMPLE_OPTIONS}
    assert {'attaches_mdev', 'auth_url', 'password'} <= names
