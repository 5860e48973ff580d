# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-agent discover: look at this host once, and talk to no one."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from oslo_config import cfg

from cyborg_lite import conf as configuration
from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.verdict_table import table
from cyborg_lite.agent.verdicts import Verdict, verdicts
from cyborg_lite.drivers import loading
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import ConfigurationError, CyborgError
from cyborg_lite.model.devices import HeldHandle

WORD: Final = 'discover'
_PROG: Final = 'cyborg-lite-agent discover'

_OPTIONS: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'sysfs-root',
        metavar='DIR',
        help='Where sys, proc and dev are; default: [agent] sysfs_root.',
    ),
    cfg.StrOpt(
        'format',
        default='table',
        choices=['table', 'json'],
        help='For people, or for programs.',
    ),
]


def run(arguments: Sequence[str]) -> int:
    """The exit status: 0, or 1 with the reason on standard error.

    That nothing is offered is an answer like any other.
    """
    conf = configuration.parse(arguments, _PROG, command_line=_OPTIONS)
    try:
        found = _look(conf)
    except CyborgError as error:
        print(f'{_PROG}: {error.text}', file=sys.stderr)
        return 1
    if conf.format == 'json':
        print(json.dumps([verdict.as_json() for verdict in found], indent=2))
    else:
        print(table(found))
    return 0


def _prepared(state: Path) -> Iterator[HeldHandle]:
    """What the agent of this host has made; it may be at work."""
    cache = Cache(state, read_only=True)
    cache.open()
    yield from (kept.handle for kept in cache.kept.values())


def _look(conf: cfg.ConfigOpts) -> list[Verdict]:
    root = Path(conf.sysfs_root or conf.agent.sysfs_root)
    if not root.is_dir():
        raise ConfigurationError(reason=f'{root} is no directory.')
    host = Host(conf.host, root)
    drivers = loading.load(conf.agent.enabled_drivers, host, conf)
    discovery = Discovery(host, drivers, conf.agent.driver_timeout)
    if root == Path(conf.agent.sysfs_root):
        discovery.own(_prepared(Path(conf.agent.state_path)))
    return verdicts(host, discovery.look(), discovery.silent)
